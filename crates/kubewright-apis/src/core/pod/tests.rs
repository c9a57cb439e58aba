//! Tests of the row of a Pod.

use serde_json::{Value, json};

use crate::table::row_conditions;
use crate::testing::{CREATED, row};
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::object::Fields as _;

/// READY, STATUS and RESTARTS of a pod with one container and one init container.
fn pod(status: &Value) -> [String; 3] {
    pod_with(json!({"status": status}))
}

fn pod_with(parts: Value) -> [String; 3] {
    let mut parts = parts;
    parts.default_at("spec", json!({"initContainers": [{"name": "i"}], "containers": [{"name": "c"}]}));
    let cells = row("v1", "Pod", parts);
    [1, 2, 3].map(|at| cells[at].as_str().unwrap().to_owned())
}

#[test]
fn a_running_pod_shows_its_node_and_ip() {
    let cells = row(
        "v1",
        "Pod",
        json!({
            "spec": {"containers": [{}, {}], "nodeName": "n", "readinessGates": [{"conditionType": "g"}, {"conditionType": "h"}]},
            "status": {
                "phase": "Running",
                "podIPs": [{"ip": "10.0.0.1"}, {"ip": "::1"}],
                "conditions": [{"type": "g", "status": "True"}],
                "containerStatuses": [
                    {"ready": true, "restartCount": 2, "state": {"running": {}},
                     "lastState": {"terminated": {"finishedAt": "2024-01-01T00:55:00Z"}}},
                    {"ready": false, "restartCount": 1, "state": {"running": {}}},
                ],
            },
        }),
    );
    let expected = json!(["o", "1/2", "Running", "3 (5m ago)", "60m", "10.0.0.1", "n", "<none>", "1/2"]);
    assert_eq!(cells, expected);
}

#[test]
fn a_waiting_pod_shows_the_reason() {
    let waiting = json!({"phase": "Pending", "containerStatuses": [
        {"restartCount": 7, "state": {"waiting": {"reason": "CrashLoopBackOff"}}},
    ]});
    assert_eq!(pod(&waiting), ["0/1", "CrashLoopBackOff", "7"]);
    let gated =
        json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]});
    assert_eq!(pod(&gated), ["0/1", "SchedulingGated", "0"]);
    assert_eq!(pod(&json!({"phase": "Failed", "reason": "Evicted"})), ["0/1", "Evicted", "0"]);
}

#[test]
fn a_terminated_pod_shows_the_reason() {
    let ended = |terminated: Value| {
        let [_, status, _] = pod(&json!({"containerStatuses": [{"state": {"terminated": terminated}}]}));
        status
    };
    assert_eq!(ended(json!({"reason": "OOMKilled", "exitCode": 137})), "OOMKilled");
    assert_eq!(ended(json!({"exitCode": 3})), "ExitCode:3");
    assert_eq!(ended(json!({"exitCode": 137, "signal": 9})), "Signal:9");
}

#[test]
fn a_pod_with_a_completed_and_a_running_container_is_running() {
    let half_done = |ready: &str| {
        let [_, status, _] = pod(&json!({
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": ready}],
            "containerStatuses": [
                {"state": {"terminated": {"reason": "Completed"}}},
                {"ready": true, "state": {"running": {}}},
            ],
        }));
        status
    };
    assert_eq!(half_done("True"), "Running");
    assert_eq!(half_done("False"), "NotReady");
}

#[test]
fn an_initializing_pod_shows_its_progress() {
    let init = |state: Value| {
        let [_, status, restarts] = pod(&json!({
            "phase": "Pending",
            "initContainerStatuses": [{"name": "i", "restartCount": 4, "state": state}],
            "containerStatuses": [{"name": "c", "restartCount": 9, "state": {"waiting": {"reason": "PodInitializing"}}}],
        }));
        [status, restarts]
    };
    assert_eq!(init(json!({"running": {}})), ["Init:0/1", "4"]);
    assert_eq!(init(json!({"waiting": {"reason": "PodInitializing"}})), ["Init:0/1", "4"]);
    assert_eq!(init(json!({"waiting": {"reason": "ImagePullBackOff"}})), ["Init:ImagePullBackOff", "4"]);
    assert_eq!(init(json!({"terminated": {"exitCode": 2}})), ["Init:ExitCode:2", "4"]);
    assert_eq!(init(json!({"terminated": {"exitCode": 2, "reason": "Error"}})), ["Init:Error", "4"]);
    assert_eq!(init(json!({"terminated": {"exitCode": 0}})), ["PodInitializing", "9"]);
}

#[test]
fn sidecars_count_as_containers() {
    let cells = pod_with(json!({
        "spec": {"initContainers": [{"name": "s", "restartPolicy": "Always"}], "containers": [{"name": "c"}]},
        "status": {
            "phase": "Running",
            "initContainerStatuses": [{"name": "s", "started": true, "ready": true, "restartCount": 2}],
            "containerStatuses": [{"name": "c", "ready": true, "restartCount": 1, "state": {"running": {}}}],
        },
    }));
    assert_eq!(cells, ["2/2", "Running", "3"]);
}

#[test]
fn a_deleted_pod_is_terminating_unless_it_has_completed() {
    let deleted = |status: Value| {
        let [_, status, _] = pod_with(json!({"metadata": {"deletionTimestamp": CREATED}, "status": status}));
        status
    };
    assert_eq!(deleted(json!({"phase": "Running"})), "Terminating");
    assert_eq!(deleted(json!({"phase": "Succeeded"})), "Succeeded");
    assert_eq!(deleted(json!({"phase": "Running", "reason": "NodeLost"})), "Unknown");
}

#[test]
fn rows_of_completed_pods_have_a_condition() {
    let pod = Gvk { group: "", version: "v1", kind: "Pod" };
    let conditions = row_conditions(pod, &json!({"status": {"phase": "Failed"}})).unwrap();
    assert_eq!(
        conditions,
        json!([{"type": "Completed", "status": "True", "reason": "Failed", "message": "The pod failed."}])
    );
    assert!(row_conditions(pod, &json!({"status": {"phase": "Running"}})).is_none());
    assert!(
        row_conditions(Gvk { kind: "Namespace", ..pod }, &json!({"status": {"phase": "Failed"}})).is_none()
    );
}
