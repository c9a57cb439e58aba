//! Tests of the readiness rules.

use serde_json::json;

use super::*;

fn evaluate(object: &Value) -> Readiness {
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    expecting_status(group, object["kind"].as_str().unwrap_or_default(), object)
}

#[track_caller]
fn ready(object: &Value) -> String {
    let found = evaluate(object);
    assert!(found.is_ready(), "{found:?}");
    found.reason
}

#[track_caller]
fn reason(object: &Value) -> String {
    let found = evaluate(object);
    assert!(!found.is_ready(), "{found:?}");
    found.reason
}

fn view(generation: i64, status: &Value) -> Value {
    json!({
        "apiVersion": "view.example.com/v1", "kind": "MarkdownView",
        "metadata": { "name": "sample", "generation": generation }, "status": status
    })
}

#[test]
fn custom_resources_are_ready_by_their_conditions() {
    let with = |kind: &str, status: &str| {
        view(1, &json!({ "conditions": [{ "type": kind, "status": status, "reason": "R", "message": "m" }] }))
    };
    assert_eq!(ready(&with("Available", "True")), "Available");
    assert_eq!(ready(&with("Ready", "True")), "Ready");
    assert_eq!(ready(&with("Degraded", "True")), "");
    assert_eq!(evaluate(&with("Degraded", "True")).state, State::Degraded);
    assert_eq!(reason(&with("Available", "False")), "Available is False: R: m");
    assert_eq!(reason(&with("Ready", "Unknown")), "Ready is Unknown: R: m");
    assert_eq!(reason(&with("Stalled", "True")), "Stalled is True: R: m");
}

#[test]
fn a_status_of_an_older_generation_does_not_count() {
    let seen = |generation: i64, observed: i64| view(generation, &json!({ "observedGeneration": observed }));
    assert_eq!(reason(&seen(2, 1)), "the controller has not observed the latest generation");
    assert_eq!(ready(&seen(2, 2)), "");
    let condition = json!({ "conditions": [{ "type": "Ready", "status": "True", "observedGeneration": 1 }] });
    assert_eq!(reason(&view(2, &condition)), "condition Ready is from an older generation");
}

#[test]
fn an_object_without_a_status_is_ready_after_a_grace_period() {
    let silent = view(1, &Value::Null);
    assert_eq!(reason(&silent), "no status yet");
    assert_eq!(of("view.example.com", "MarkdownView", &silent), Readiness::new(State::Unknown, "", ""));
    assert_eq!(ready(&view(1, &json!({}))), "");
}

#[test]
fn an_object_that_is_being_deleted_is_not_ready() {
    let mut object = view(1, &json!({}));
    object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    assert_eq!(reason(&object), "being deleted");
}

#[test]
fn a_deployment_is_ready_when_its_rollout_is_done() {
    let with = |replicas: i64, updated: i64, available: i64, status: &str| {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "generation": 1 },
            "spec": { "replicas": 2 },
            "status": {
                "observedGeneration": 1, "replicas": replicas, "updatedReplicas": updated,
                "availableReplicas": available,
                "conditions": [{ "type": "Available", "status": status, "reason": "R" }]
            }
        })
    };
    assert_eq!(ready(&with(2, 2, 2, "True")), "Available");
    assert_eq!(reason(&with(2, 1, 2, "True")), "1 of 2 pods updated");
    assert_eq!(reason(&with(3, 2, 2, "True")), "1 old pods remaining");
    assert_eq!(reason(&with(2, 2, 1, "True")), "1 of 2 pods available");
    assert_eq!(reason(&with(2, 2, 2, "False")), "Available is False: R");
    let mut undecided = with(2, 2, 2, "True");
    undecided["status"]["conditions"] = json!([]);
    assert_eq!(ready(&undecided), "Available");
    let unseen = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "spec": {} });
    assert_eq!(reason(&unseen), "not observed by its controller yet");
}

#[test]
fn a_pod_is_ready_when_it_runs_or_is_done() {
    let with = |phase: &str, ready: &str| {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "status": { "phase": phase, "conditions": [{ "type": "Ready", "status": ready }] }
        })
    };
    assert_eq!(ready(&with("Running", "True")), "Running");
    assert_eq!(ready(&with("Succeeded", "False")), "Succeeded");
    assert_eq!(reason(&with("Running", "False")), "phase is Running");
    let waits = json!({
        "apiVersion": "v1", "kind": "Pod",
        "status": {
            "phase": "Pending",
            "containerStatuses": [{ "state": { "waiting": { "reason": "ImagePullBackOff", "message": "m" } } }]
        }
    });
    assert_eq!(reason(&waits), "container waiting: ImagePullBackOff: m");
    let unscheduled = json!({
        "apiVersion": "v1", "kind": "Pod",
        "status": {
            "phase": "Pending",
            "conditions": [{ "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node" }]
        }
    });
    assert_eq!(reason(&unscheduled), "PodScheduled is False: Unschedulable: no node");
}

#[test]
fn other_workloads_follow_kubectl_rollout_status() {
    let set = |kind: &str, status: &Value| json!({ "apiVersion": "apps/v1", "kind": kind, "spec": { "replicas": 1 }, "status": status });
    assert_eq!(
        ready(&set("ReplicaSet", &json!({ "readyReplicas": 1, "availableReplicas": 1 }))),
        "all pods ready"
    );
    assert_eq!(reason(&set("ReplicaSet", &json!({}))), "0 of 1 pods ready");
    let moving = json!({ "readyReplicas": 1, "currentRevision": "a", "updateRevision": "b" });
    assert_eq!(reason(&set("StatefulSet", &moving)), "not all pods are updated");
    let daemons = json!({ "observedGeneration": 1, "desiredNumberScheduled": 2, "updatedNumberScheduled": 2, "numberAvailable": 1 });
    assert_eq!(reason(&set("DaemonSet", &daemons)), "1 of 2 pods available");
    let job = |status: &Value| json!({ "apiVersion": "batch/v1", "kind": "Job", "status": status });
    assert_eq!(reason(&job(&json!({}))), "not started");
    assert_eq!(ready(&job(&json!({ "startTime": "t" }))), "started");
    let failed = json!({ "startTime": "t", "conditions": [{ "type": "Failed", "status": "True", "reason": "DeadlineExceeded" }] });
    assert_eq!(reason(&job(&failed)), "Failed is True: DeadlineExceeded");
}

#[test]
fn only_a_workload_that_its_controller_gave_up_has_failed() {
    let progress = |reason: &str| {
        let condition = json!({ "type": "Progressing", "status": "False", "reason": reason, "message": "m" });
        let status = json!({ "observedGeneration": 1, "conditions": [condition] });
        of("apps", "Deployment", &json!({ "metadata": { "generation": 1 }, "status": status }))
    };
    let late = progress("ProgressDeadlineExceeded");
    assert_eq!(
        (late.state, late.reason.as_str()),
        (State::Failed, "Progressing is False: ProgressDeadlineExceeded: m")
    );
    assert_eq!(progress("ReplicaSetCreateError").state, State::Failing);
}

#[test]
fn a_phase_decides_if_there_are_no_conditions() {
    let with = |phase: &str| of("example.com", "View", &view(1, &json!({ "phase": phase })));
    assert_eq!(with("Running").state, State::Ready);
    assert_eq!((with("Failed").state, with("Failed").reason.as_str()), (State::Failing, "phase is Failed"));
    assert_eq!(with("Provisioning").state, State::InProgress);
    // A word of this kind alone: the object counts as ready.
    assert_eq!((with("Deployed").state, with("Deployed").is_ready()), (State::Unknown, true));
}

#[test]
fn all_conditions_that_mean_ready_must_be_true() {
    let conditions = json!([
        { "type": "Ready", "status": "True" },
        { "type": "Available", "status": "False", "reason": "R" },
    ]);
    let mut object = view(1, &json!({ "conditions": conditions }));
    assert_eq!(reason(&object), "Available is False: R");
    object["status"]["conditions"][1]["status"] = "True".into();
    assert_eq!(ready(&object), "Ready");
    assert_eq!(
        reason(&view(1, &json!({ "conditions": [{ "type": "Synced", "status": "False" }] }))),
        "Synced is False"
    );
}
