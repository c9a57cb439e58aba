//! Whether an object is ready, by the rules of `kubectl wait` and kstatus.
//!
//! [`of`] is a pure function of the object. Built-in workloads have their own rules. Other objects are ready
//! when their controller has observed the latest generation and none of their `Ready` and `Available`
//! conditions is other than `True`. Objects without any of these are ready.

pub(crate) mod tree;

use serde_json::Value;

/// The readiness of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Readiness {
    /// Ready, by this condition if any.
    Ready(Option<&'static str>),
    /// Not ready, with the reason.
    NotReady(String),
}

use Readiness::{NotReady, Ready};

/// Evaluates an object. Without a status it is not ready while `may_yet_speak`, because the controller may
/// still set one.
pub(crate) fn of(object: &Value, may_yet_speak: bool) -> Readiness {
    if !object["metadata"]["deletionTimestamp"].is_null() {
        return NotReady("being deleted".to_owned());
    }
    let generation = object["metadata"]["generation"].as_i64();
    if is_older(object["status"]["observedGeneration"].as_i64(), generation) {
        return NotReady("the controller has not observed the latest generation".to_owned());
    }
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let verdict = match (api_version, object["kind"].as_str().unwrap_or_default()) {
        ("apps/v1", "Deployment") => deployment(object),
        ("apps/v1", "ReplicaSet") => replica_set(object),
        ("apps/v1", "StatefulSet") => stateful_set(object),
        ("apps/v1", "DaemonSet") => daemon_set(object),
        ("batch/v1", "Job") => job(object),
        ("v1", "Pod") => pod(object),
        ("v1", "PersistentVolumeClaim") => phase(object, "Bound"),
        ("v1", "Namespace") => phase(object, "Active"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition") => {
            holds(object, "Established").map(|()| "Established")
        }
        _ if object["status"].is_null() && may_yet_speak => Err("no status yet".to_owned()),
        _ => return conditions(object, generation),
    };
    match verdict {
        Ok(by) => Ready(Some(by)),
        Err(reason) => NotReady(reason),
    }
}

/// What makes it ready, or the reason why it is not.
type Verdict = Result<&'static str, String>;

/// The rule for other kinds.
fn conditions(object: &Value, generation: Option<i64>) -> Readiness {
    if let Some(stalled) = condition(object, "Stalled").filter(|condition| condition["status"] == "True") {
        return NotReady(why("Stalled", stalled));
    }
    let mut ready = None;
    for kind in ["Available", "Ready"] {
        let Some(condition) = condition(object, kind) else { continue };
        if condition["status"] != "True" {
            return NotReady(why(kind, condition));
        }
        if is_older(condition["observedGeneration"].as_i64(), generation) {
            return NotReady(format!("condition {kind} is from an older generation"));
        }
        ready = Some(kind);
    }
    Ready(ready)
}

fn deployment(object: &Value) -> Verdict {
    let wanted = object["spec"]["replicas"].as_i64().unwrap_or(1);
    let number = |field: &str| object["status"][field].as_i64().unwrap_or(0);
    if let Some(progress) = condition(object, "Progressing")
        && progress["reason"] == "ProgressDeadlineExceeded"
    {
        return Err(why("Progressing", progress));
    }
    if object["status"]["observedGeneration"].is_null() {
        return Err("not observed by its controller yet".to_owned());
    }
    enough("pods updated", number("updatedReplicas"), wanted)?;
    let old = number("replicas") - number("updatedReplicas");
    if old > 0 {
        return Err(format!("{old} old pods remaining"));
    }
    enough("pods available", number("availableReplicas"), wanted)?;
    holds(object, "Available").map(|()| "Available")
}

fn replica_set(object: &Value) -> Verdict {
    let wanted = object["spec"]["replicas"].as_i64().unwrap_or(1);
    let number = |field: &str| object["status"][field].as_i64().unwrap_or(0);
    if let Some(failure) = condition(object, "ReplicaFailure").filter(|found| found["status"] == "True") {
        return Err(why("ReplicaFailure", failure));
    }
    enough("pods ready", number("readyReplicas"), wanted)?;
    enough("pods available", number("availableReplicas"), wanted)?;
    Ok("all pods ready")
}

fn stateful_set(object: &Value) -> Verdict {
    let wanted = object["spec"]["replicas"].as_i64().unwrap_or(1);
    let number = |field: &str| object["status"][field].as_i64().unwrap_or(0);
    enough("pods ready", number("readyReplicas"), wanted)?;
    if object["spec"]["updateStrategy"]["type"] != "OnDelete"
        && object["status"]["currentRevision"] != object["status"]["updateRevision"]
    {
        return Err("not all pods are updated".to_owned());
    }
    Ok("all pods ready")
}

fn daemon_set(object: &Value) -> Verdict {
    if object["status"]["observedGeneration"].is_null() {
        return Err("not observed by its controller yet".to_owned());
    }
    let number = |field: &str| object["status"][field].as_i64().unwrap_or(0);
    let wanted = number("desiredNumberScheduled");
    enough("pods updated", number("updatedNumberScheduled"), wanted)?;
    enough("pods available", number("numberAvailable"), wanted)?;
    Ok("all pods ready")
}

/// A Job is ready when it has started, since it may run for days.
fn job(object: &Value) -> Verdict {
    if let Some(failed) = condition(object, "Failed").filter(|found| found["status"] == "True") {
        return Err(why("Failed", failed));
    }
    if holds(object, "Complete").is_ok() {
        return Ok("Complete");
    }
    if object["status"]["startTime"].is_null() { Err("not started".to_owned()) } else { Ok("started") }
}

fn pod(object: &Value) -> Verdict {
    let status = &object["status"];
    match status["phase"].as_str() {
        Some("Succeeded") => return Ok("Succeeded"),
        Some("Running") if holds(object, "Ready").is_ok() => return Ok("Running"),
        _ => {}
    }
    let containers = status["containerStatuses"].as_array().into_iter().flatten();
    let waits = containers.map(|container| &container["state"]["waiting"]).find(|waiting| !waiting.is_null());
    if let Some(waiting) = waits {
        return Err(why("container waiting", waiting));
    }
    match condition(object, "PodScheduled").filter(|found| found["status"] == "False") {
        Some(scheduled) => Err(why("PodScheduled", scheduled)),
        None => Err(format!("phase is {}", status["phase"].as_str().unwrap_or("unknown"))),
    }
}

fn phase(object: &Value, wanted: &'static str) -> Verdict {
    match object["status"]["phase"].as_str() {
        Some(phase) if phase == wanted => Ok(wanted),
        Some(phase) => Err(format!("phase is {phase}")),
        None => Err("no phase yet".to_owned()),
    }
}

fn enough(what: &str, have: i64, wanted: i64) -> Result<(), String> {
    if have < wanted { Err(format!("{have} of {wanted} {what}")) } else { Ok(()) }
}

/// Whether a condition is True.
fn holds(object: &Value, kind: &str) -> Result<(), String> {
    match condition(object, kind) {
        Some(condition) if condition["status"] == "True" => Ok(()),
        Some(condition) => Err(why(kind, condition)),
        None => Err(format!("no condition {kind} yet")),
    }
}

fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind)
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

/// Whether the observed generation is outdated.
fn is_older(observed: Option<i64>, generation: Option<i64>) -> bool {
    observed.zip(generation).is_some_and(|(observed, generation)| observed < generation)
}

#[cfg(test)]
mod tests;
