//! Whether an object is ready: the one rule of `dev`, its web UI and `deploy`.
//!
//! [`of`] is a pure function of the object. Built-in workloads follow `kubectl rollout status` and kstatus. Other objects
//! follow the API conventions: their controller has observed the latest generation, and their conditions or their phase
//! report no problem. Unknown conditions and phases are ignored.

use serde_json::Value;

/// The readiness of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Readiness {
    pub state: State,
    /// A short text, similar to the status column of `kubectl get`. Empty if the object reports nothing.
    pub word: String,
    /// What makes the object ready, or why it is not. Empty if the object reports nothing.
    pub reason: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Ready,
    /// Ready, with the condition `Degraded`.
    Degraded,
    /// Not ready yet.
    InProgress,
    /// Not ready because of a problem that may resolve itself, such as a crash loop.
    Failing,
    /// Not ready, and the controller has given up.
    Failed,
    /// The object reports nothing about its readiness.
    Unknown,
}

impl Readiness {
    /// Objects that report nothing count as ready.
    pub fn is_ready(&self) -> bool {
        matches!(self.state, State::Ready | State::Degraded | State::Unknown)
    }

    fn new(state: State, word: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { state, word: word.into(), reason: reason.into() }
    }

    fn ready(word: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::new(State::Ready, word, reason)
    }

    fn in_progress(word: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::new(State::InProgress, word, reason)
    }
}

/// Conditions that decide together: each one that exists must be True.
const READY: [&str; 2] = ["Available", "Ready"];
/// Conditions that decide if there is none of [`READY`], the first one that exists.
const OTHERWISE: [&str; 6] = ["Established", "Healthy", "Complete", "Succeeded", "Synced", "Approved"];
/// Conditions that report a problem if they are True.
const PROBLEMS: [&str; 5] = ["Failed", "Stalled", "Error", "ReplicaFailure", "FailureTarget"];
/// Parts of the waiting reasons of containers that need intervention.
const STUCK: [&str; 4] = ["BackOff", "Err", "Invalid", "Error"];

/// Evaluates an object of a group and kind.
pub fn of(group: &str, kind: &str, object: &Value) -> Readiness {
    if !object["metadata"]["deletionTimestamp"].is_null() {
        return Readiness::in_progress("Terminating", "being deleted");
    }
    match (group, kind) {
        ("", "Pod") => pod(object),
        ("apps", "Deployment") => deployment(object),
        ("apps", "ReplicaSet") | ("", "ReplicationController") => replica_set(object),
        ("apps", "StatefulSet") => stateful_set(object),
        ("apps", "DaemonSet") => daemon_set(object),
        ("batch", "Job") => job(object),
        ("", "PersistentVolumeClaim") => phase(object, "Bound"),
        ("", "Namespace") => phase(object, "Active"),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => definition(object),
        _ => by_convention(object),
    }
}

/// Like [`of`], for an object whose controller has yet to set a status: without one it is not ready.
pub fn expecting_status(group: &str, kind: &str, object: &Value) -> Readiness {
    match of(group, kind, object) {
        found if found.state == State::Unknown && object["status"].is_null() => {
            Readiness::in_progress("", "no status yet")
        }
        found => found,
    }
}

fn pod(object: &Value) -> Readiness {
    let status = &object["status"];
    let phase = status["phase"].as_str().unwrap_or_default();
    let is_ready = is_true(condition(object, "Ready"));
    match phase {
        "Succeeded" => return Readiness::ready("Completed", "Succeeded"),
        "Running" if is_ready => return Readiness::ready("Running", "Running"),
        _ => {}
    }
    let mut waiting = None;
    for list in ["initContainerStatuses", "containerStatuses"] {
        for container in status[list].as_array().into_iter().flatten() {
            let state = &container["state"]["waiting"];
            let reason = state["reason"].as_str().unwrap_or_default();
            if STUCK.iter().any(|stuck| reason.contains(stuck)) {
                return Readiness::new(State::Failing, reason, why("container waiting", state));
            }
            waiting = waiting.or_else(|| (!state.is_null()).then(|| why("container waiting", state)));
        }
    }
    let unscheduled = condition(object, "PodScheduled").filter(|found| found["status"] == "False");
    let reason = waiting
        .or_else(|| unscheduled.map(|scheduled| why("PodScheduled", scheduled)))
        .unwrap_or_else(|| format!("phase is {}", if phase.is_empty() { "unknown" } else { phase }));
    match phase {
        "Failed" => {
            let word = status["reason"].as_str().filter(|word| !word.is_empty()).unwrap_or("Failed");
            Readiness::new(State::Failed, word, reason)
        }
        "Running" => Readiness::in_progress("Not ready", reason),
        "" => Readiness::in_progress("Pending", reason),
        phase => Readiness::in_progress(phase, reason),
    }
}

/// The rule of `kubectl rollout status`.
fn deployment(object: &Value) -> Readiness {
    let wanted = object["spec"]["replicas"].as_i64().unwrap_or(1);
    if let Some(problem) = problem(object) {
        return problem;
    }
    if let Some(progress) = condition(object, "Progressing").filter(|found| found["status"] == "False") {
        let is_final = progress["reason"] == "ProgressDeadlineExceeded";
        let state = if is_final { State::Failed } else { State::Failing };
        return Readiness::new(state, "Not progressing", why("Progressing", progress));
    }
    let rollout = || {
        let [replicas, updated, available] =
            ["replicas", "updatedReplicas", "availableReplicas"].map(|field| number(object, field));
        observed(object)?;
        enough("pods updated", updated, wanted)?;
        if replicas > updated {
            return Err(format!("{} old pods remaining", replicas - updated));
        }
        enough("pods available", available, updated.max(wanted))?;
        match condition(object, "Available") {
            Some(found) if !is_true(Some(found)) => Err(why("Available", found)),
            _ => Ok("Available"),
        }
    };
    counted(number(object, "readyReplicas"), wanted, rollout())
}

fn replica_set(object: &Value) -> Readiness {
    if let Some(problem) = problem(object) {
        return problem;
    }
    let wanted = object["spec"]["replicas"].as_i64().unwrap_or(1);
    let ready = number(object, "readyReplicas");
    let verdict = up_to_date(object)
        .and_then(|()| enough("pods ready", ready, wanted))
        .and_then(|()| enough("pods available", number(object, "availableReplicas"), wanted));
    counted(ready, wanted, verdict.map(|()| "all pods ready"))
}

fn stateful_set(object: &Value) -> Readiness {
    let wanted = object["spec"]["replicas"].as_i64().unwrap_or(1);
    let ready = number(object, "readyReplicas");
    let status = &object["status"];
    let is_updated = object["spec"]["updateStrategy"]["type"] == "OnDelete"
        || status["currentRevision"] == status["updateRevision"];
    let verdict = up_to_date(object).and_then(|()| enough("pods ready", ready, wanted)).and_then(|()| {
        if is_updated { Ok("all pods ready") } else { Err("not all pods are updated".to_owned()) }
    });
    counted(ready, wanted, verdict)
}

fn daemon_set(object: &Value) -> Readiness {
    let wanted = number(object, "desiredNumberScheduled");
    let verdict = observed(object)
        .and_then(|()| enough("pods updated", number(object, "updatedNumberScheduled"), wanted))
        .and_then(|()| enough("pods available", number(object, "numberAvailable"), wanted));
    counted(number(object, "numberReady"), wanted, verdict.map(|()| "all pods ready"))
}

/// A Job is ready when it has started, since it may run for days.
fn job(object: &Value) -> Readiness {
    if let Some(failed) = condition(object, "Failed").filter(|found| is_true(Some(found))) {
        return Readiness::new(State::Failed, "Failed", why("Failed", failed));
    }
    if let Some(problem) = problem(object) {
        return problem;
    }
    if is_true(condition(object, "Complete")) {
        return Readiness::ready("Complete", "Complete");
    }
    if let Some(suspended) = condition(object, "Suspended").filter(|found| is_true(Some(found))) {
        return Readiness::in_progress("Suspended", why("Suspended", suspended));
    }
    let word = format!("{} active", number(object, "active"));
    if object["status"]["startTime"].is_null() {
        Readiness::in_progress(word, "not started")
    } else {
        Readiness::ready(word, "started")
    }
}

/// Kinds of which one phase means ready.
fn phase(object: &Value, wanted: &str) -> Readiness {
    match object["status"]["phase"].as_str() {
        Some(phase) if phase == wanted => Readiness::ready(wanted, wanted),
        Some("Lost") => Readiness::new(State::Failing, "Lost", "phase is Lost"),
        Some(phase) => Readiness::in_progress(phase, format!("phase is {phase}")),
        None => Readiness::in_progress("Pending", "no phase yet"),
    }
}

fn definition(object: &Value) -> Readiness {
    if let Some(names) = condition(object, "NamesAccepted").filter(|found| found["status"] == "False") {
        return Readiness::new(State::Failing, "Names not accepted", why("NamesAccepted", names));
    }
    match condition(object, "Established") {
        found if is_true(found) => Readiness::ready("Established", "Established"),
        Some(found) => Readiness::in_progress("Not established", why("Established", found)),
        None => Readiness::in_progress("Not established", "no condition Established yet"),
    }
}

/// The rule for other kinds.
fn by_convention(object: &Value) -> Readiness {
    if let Some(problem) = problem(object) {
        return problem;
    }
    if let Err(reason) = up_to_date(object) {
        return Readiness::in_progress("Out of date", reason);
    }
    let mut decisive: Vec<&str> =
        READY.into_iter().filter(|kind| condition(object, kind).is_some()).collect();
    if decisive.is_empty() {
        decisive.extend(OTHERWISE.into_iter().find(|kind| condition(object, kind).is_some()));
    }
    let generation = object["metadata"]["generation"].as_i64();
    let mut verdict = by_phase(object);
    for kind in decisive {
        let Some(found) = condition(object, kind) else { continue };
        if !is_true(Some(found)) {
            return Readiness::in_progress(format!("Not {}", kind.to_lowercase()), why(kind, found));
        }
        if is_older(found["observedGeneration"].as_i64(), generation) {
            let reason = format!("condition {kind} is from an older generation");
            return Readiness::in_progress("Out of date", reason);
        }
        verdict = Readiness::ready(kind, kind);
    }
    if is_true(condition(object, "Degraded")) {
        let reason = if verdict.state == State::Ready { verdict.reason } else { String::new() };
        return Readiness::new(State::Degraded, "Degraded", reason);
    }
    verdict
}

/// The phase or state of an object without conditions, if it is a common word.
fn by_phase(object: &Value) -> Readiness {
    let texts = ["phase", "state"].map(|field| object["status"][field].as_str().unwrap_or_default());
    let Some(phase) = texts.into_iter().find(|text| !text.is_empty()) else {
        return Readiness::new(State::Unknown, "", "");
    };
    match phase.to_lowercase().as_str() {
        "active" | "available" | "bound" | "complete" | "completed" | "healthy" | "ready" | "running"
        | "succeeded" => Readiness::ready(phase, phase),
        "error" | "failed" | "lost" => Readiness::new(State::Failing, phase, format!("phase is {phase}")),
        "creating" | "deleting" | "initializing" | "pending" | "progressing" | "provisioning"
        | "starting" | "terminating" | "updating" | "waiting" => {
            Readiness::in_progress(phase, format!("phase is {phase}"))
        }
        _ => Readiness::new(State::Unknown, phase, phase),
    }
}

/// The first condition that reports a problem.
fn problem(object: &Value) -> Option<Readiness> {
    PROBLEMS.into_iter().find_map(|kind| {
        let found = condition(object, kind).filter(|found| is_true(Some(found)))?;
        Some(Readiness::new(State::Failing, kind, why(kind, found)))
    })
}

/// A workload with a number of ready pods.
fn counted(ready: i64, wanted: i64, verdict: Result<&str, String>) -> Readiness {
    let word = format!("{ready}/{wanted} ready");
    match verdict {
        Ok(by) => Readiness::ready(word, by),
        Err(reason) => Readiness::in_progress(word, reason),
    }
}

fn enough(what: &str, have: i64, wanted: i64) -> Result<(), String> {
    if have < wanted { Err(format!("{have} of {wanted} {what}")) } else { Ok(()) }
}

/// Whether the controller has observed the object.
fn observed(object: &Value) -> Result<(), String> {
    if object["status"]["observedGeneration"].is_null() {
        return Err("not observed by its controller yet".to_owned());
    }
    up_to_date(object)
}

/// Whether the status is of the latest generation. Controllers that do not report a generation count as up to date.
fn up_to_date(object: &Value) -> Result<(), String> {
    let generation = object["metadata"]["generation"].as_i64();
    if is_older(object["status"]["observedGeneration"].as_i64(), generation) {
        return Err("the controller has not observed the latest generation".to_owned());
    }
    Ok(())
}

fn is_older(observed: Option<i64>, generation: Option<i64>) -> bool {
    observed.zip(generation).is_some_and(|(observed, generation)| observed < generation)
}

fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind)
}

fn is_true(condition: Option<&Value>) -> bool {
    condition.is_some_and(|condition| condition["status"] == "True")
}

/// Describes a condition, or anything with a reason and a message.
fn why(kind: &str, condition: &Value) -> String {
    let text = |field: &str| condition[field].as_str().filter(|text| !text.is_empty());
    let status = text("status").map(|status| format!(" is {status}")).unwrap_or_default();
    match (text("reason"), text("message")) {
        (Some(reason), Some(message)) => format!("{kind}{status}: {reason}: {message}"),
        (Some(only), None) | (None, Some(only)) => format!("{kind}{status}: {only}"),
        (None, None) => format!("{kind}{status}"),
    }
}

fn number(object: &Value, field: &str) -> i64 {
    object["status"][field].as_i64().unwrap_or_default()
}

#[cfg(test)]
mod tests;
