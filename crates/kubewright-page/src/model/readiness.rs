//! How the readiness of an object is displayed: a level and a word.

use serde::Serialize;
use serde_json::Value;

use crate::readiness::{self, State};

/// The severity. The word beside it has the same meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// As desired.
    Good,
    /// In progress.
    Waiting,
    /// Something is wrong.
    Bad,
    /// No status.
    Unknown,
}

/// The displayed readiness.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Shown {
    pub level: Level,
    pub word: String,
}

/// The displayed readiness of an object.
pub fn shown(group: &str, kind: &str, object: &Value) -> Shown {
    let found = readiness::of(group, kind, object);
    let level = match found.state {
        State::Ready => Level::Good,
        State::InProgress => Level::Waiting,
        State::Degraded | State::Failing | State::Failed => Level::Bad,
        State::Unknown => Level::Unknown,
    };
    Shown { level, word: found.word }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(group: &str, kind: &str, object: &Value, level: Level, word: &str) {
        assert_eq!(shown(group, kind, object), Shown { level, word: word.to_owned() }, "{kind} {object}");
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
                "status": { "observedGeneration": 2, "updatedReplicas": updated, "readyReplicas": ready, "availableReplicas": ready },
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
