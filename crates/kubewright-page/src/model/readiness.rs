//! The displayed status of an object, similar to `kubectl get`, for every kind.
//!
//! A pure function of the object. Built-in kinds have their own rules; other kinds follow the conventions for
//! conditions. Unknown conditions are ignored, and objects without a status have none.

use serde::Serialize;
use serde_json::Value;

/// The severity. The word beside it has the same meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// As desired.
    Good,
    /// In progress.
    Waiting,
    /// Failed.
    Bad,
    /// No status.
    Unknown,
}

/// The displayed status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Readiness {
    pub level: Level,
    pub word: String,
}

impl Readiness {
    fn new(level: Level, word: impl Into<String>) -> Self {
        Self { level, word: word.into() }
    }
}

/// Conditions that are True if all is well.
const GOOD: &[&str] =
    &["Ready", "Available", "Established", "Healthy", "Complete", "Succeeded", "Synced", "Approved"];
/// Conditions that are True if something is wrong.
const BAD: &[&str] = &["Degraded", "Failed", "Stalled", "Error", "ReplicaFailure", "FailureTarget"];
/// Waiting reasons of containers that need intervention.
const STUCK: &[&str] = &["BackOff", "Err", "Invalid", "Error"];

/// The status of an object.
pub fn readiness(group: &str, kind: &str, object: &Value) -> Readiness {
    if object.pointer("/metadata/deletionTimestamp").is_some() {
        return Readiness::new(Level::Waiting, "Terminating");
    }
    match (group, kind) {
        ("", "Pod") => pod(object),
        ("apps", "Deployment" | "ReplicaSet" | "StatefulSet") | ("", "ReplicationController") => {
            replicas(object)
        }
        ("apps", "DaemonSet") => {
            let (wanted, ready) =
                (number(object, "/status/desiredNumberScheduled"), number(object, "/status/numberReady"));
            counted(ready, wanted, is_observed(object))
        }
        ("batch", "Job") => job(object),
        _ => by_convention(object),
    }
}

fn pod(pod: &Value) -> Readiness {
    let phase = text(pod, "/status/phase");
    let containers = ["initContainerStatuses", "containerStatuses"]
        .iter()
        .filter_map(|list| pod.pointer(&format!("/status/{list}"))?.as_array())
        .flatten();
    for container in containers {
        let reason = text(container, "/state/waiting/reason");
        if STUCK.iter().any(|stuck| reason.contains(stuck)) {
            return Readiness::new(Level::Bad, reason);
        }
    }
    match phase {
        "Running" if condition(pod, "Ready") == Some("True") => Readiness::new(Level::Good, "Running"),
        "Running" => Readiness::new(Level::Waiting, "Not ready"),
        "Succeeded" => Readiness::new(Level::Good, "Completed"),
        "Failed" => {
            let reason = text(pod, "/status/reason");
            Readiness::new(Level::Bad, if reason.is_empty() { "Failed" } else { reason })
        }
        "" => Readiness::new(Level::Waiting, "Pending"),
        phase => Readiness::new(Level::Waiting, phase),
    }
}

fn replicas(object: &Value) -> Readiness {
    if let Some(failed) = failed(object) {
        return failed;
    }
    if condition(object, "Progressing") == Some("False") {
        return Readiness::new(Level::Bad, "Not progressing");
    }
    let wanted = object.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(1);
    let updated = object.pointer("/status/updatedReplicas").and_then(Value::as_i64).unwrap_or(wanted);
    counted(number(object, "/status/readyReplicas"), wanted, is_observed(object) && updated >= wanted)
}

fn counted(ready: i64, wanted: i64, current: bool) -> Readiness {
    let level = if current && ready >= wanted { Level::Good } else { Level::Waiting };
    Readiness::new(level, format!("{ready}/{wanted} ready"))
}

fn job(job: &Value) -> Readiness {
    if let Some(failed) = failed(job) {
        return failed;
    }
    if condition(job, "Complete") == Some("True") {
        return Readiness::new(Level::Good, "Complete");
    }
    if condition(job, "Suspended") == Some("True") {
        return Readiness::new(Level::Waiting, "Suspended");
    }
    Readiness::new(Level::Waiting, format!("{} active", number(job, "/status/active")))
}

fn by_convention(object: &Value) -> Readiness {
    if let Some(failed) = failed(object) {
        return failed;
    }
    for good in GOOD {
        let Some(status) = condition(object, good) else { continue };
        if status != "True" {
            let word = if *good == "Ready" {
                "Not ready".to_owned()
            } else {
                format!("Not {}", good.to_lowercase())
            };
            return Readiness::new(Level::Waiting, word);
        }
        if !is_observed(object) {
            return Readiness::new(Level::Waiting, "Out of date");
        }
        return Readiness::new(Level::Good, *good);
    }
    let phase = ["/status/phase", "/status/state"]
        .into_iter()
        .map(|path| text(object, path))
        .find(|word| !word.is_empty());
    let Some(phase) = phase else { return Readiness::new(Level::Unknown, "") };
    let level = match phase.to_lowercase().as_str() {
        "active" | "available" | "bound" | "complete" | "completed" | "healthy" | "ready" | "running"
        | "succeeded" => Level::Good,
        "error" | "failed" | "lost" => Level::Bad,
        _ => Level::Waiting,
    };
    Readiness::new(level, phase)
}

fn failed(object: &Value) -> Option<Readiness> {
    let bad = BAD.iter().find(|bad| condition(object, bad) == Some("True"))?;
    Some(Readiness::new(Level::Bad, *bad))
}

/// Whether the status is from the latest generation, as far as known.
fn is_observed(object: &Value) -> bool {
    let generation = object.pointer("/metadata/generation").and_then(Value::as_i64);
    let observed = object.pointer("/status/observedGeneration").and_then(Value::as_i64);
    match (generation, observed) {
        (Some(generation), Some(observed)) => observed >= generation,
        _ => true,
    }
}

fn condition<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    let all = object.pointer("/status/conditions")?.as_array()?;
    all.iter().find(|condition| condition["type"] == name)?["status"].as_str()
}

fn text<'a>(value: &'a Value, path: &str) -> &'a str {
    value.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

fn number(value: &Value, path: &str) -> i64 {
    value.pointer(path).and_then(Value::as_i64).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(group: &str, kind: &str, object: &Value, level: Level, word: &str) {
        assert_eq!(readiness(group, kind, object), Readiness::new(level, word), "{kind} {object}");
    }

    #[test]
    fn pods_have_the_status_of_kubectl() {
        let pod = |status: Value| json!({ "status": status });
        let ready = json!([{ "type": "Ready", "status": "True" }]);
        check("", "Pod", &pod(json!({ "phase": "Running", "conditions": ready })), Level::Good, "Running");
        check("", "Pod", &pod(json!({ "phase": "Running" })), Level::Waiting, "Not ready");
        check("", "Pod", &pod(json!({ "phase": "Pending" })), Level::Waiting, "Pending");
        check("", "Pod", &pod(json!({ "phase": "Succeeded" })), Level::Good, "Completed");
        check("", "Pod", &pod(json!({ "phase": "Failed", "reason": "Evicted" })), Level::Bad, "Evicted");
        let waits = json!([{ "state": { "waiting": { "reason": "CrashLoopBackOff" } } }]);
        check(
            "",
            "Pod",
            &pod(json!({ "phase": "Running", "containerStatuses": waits })),
            Level::Bad,
            "CrashLoopBackOff",
        );
        let creates = json!([{ "state": { "waiting": { "reason": "ContainerCreating" } } }]);
        check(
            "",
            "Pod",
            &pod(json!({ "phase": "Pending", "containerStatuses": creates })),
            Level::Waiting,
            "Pending",
        );
    }

    #[test]
    fn a_deployment_is_ready_when_all_updated_replicas_are() {
        let deployment = |generation: i64, updated: i64, ready: i64| {
            json!({
                "metadata": { "generation": generation },
                "spec": { "replicas": 2 },
                "status": { "observedGeneration": 2, "updatedReplicas": updated, "readyReplicas": ready },
            })
        };
        check("apps", "Deployment", &deployment(2, 2, 2), Level::Good, "2/2 ready");
        check("apps", "Deployment", &deployment(2, 2, 1), Level::Waiting, "1/2 ready");
        check("apps", "Deployment", &deployment(2, 1, 2), Level::Waiting, "2/2 ready");
        check("apps", "Deployment", &deployment(3, 2, 2), Level::Waiting, "2/2 ready");
        let stuck = json!({ "status": { "conditions": [{ "type": "Progressing", "status": "False" }] } });
        check("apps", "Deployment", &stuck, Level::Bad, "Not progressing");
    }

    #[test]
    fn other_kinds_use_conditions_then_the_phase() {
        let object = |conditions: Value| json!({ "metadata": { "generation": 2 }, "status": { "observedGeneration": 2, "conditions": conditions } });
        let is = |name: &str, status: &str| json!({ "type": name, "status": status });
        check(
            "x.io",
            "View",
            &object(json!([is("Available", "True"), is("Degraded", "False")])),
            Level::Good,
            "Available",
        );
        check(
            "x.io",
            "View",
            &object(json!([is("Available", "True"), is("Degraded", "True")])),
            Level::Bad,
            "Degraded",
        );
        check("x.io", "View", &object(json!([is("Ready", "False")])), Level::Waiting, "Not ready");
        check("x.io", "View", &object(json!([is("Available", "Unknown")])), Level::Waiting, "Not available");
        let behind = json!({ "metadata": { "generation": 3 }, "status": { "observedGeneration": 2, "conditions": [is("Ready", "True")] } });
        check("x.io", "View", &behind, Level::Waiting, "Out of date");
        check("", "Namespace", &json!({ "status": { "phase": "Active" } }), Level::Good, "Active");
        check("", "ConfigMap", &json!({ "data": {} }), Level::Unknown, "");
        let going = json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" }, "status": { "phase": "Active" } });
        check("", "Namespace", &going, Level::Waiting, "Terminating");
    }

    #[test]
    fn jobs_are_active_complete_or_failed() {
        let job = |name: &str| json!({ "status": { "active": 1, "conditions": [{ "type": name, "status": "True" }] } });
        check("batch", "Job", &json!({ "status": { "active": 3 } }), Level::Waiting, "3 active");
        check("batch", "Job", &job("Complete"), Level::Good, "Complete");
        check("batch", "Job", &job("Failed"), Level::Bad, "Failed");
        check("batch", "Job", &job("Suspended"), Level::Waiting, "Suspended");
    }
}
