//! Plans for sets of pods.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const NOW: &str = "2026-01-02T00:00:00Z";

fn set(replicas: i32, more: &Value) -> StatefulSet {
    let mut set = json!({
        "metadata": { "name": "db" },
        "spec": { "replicas": replicas, "selector": {}, "template": {} },
    });
    set["spec"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(set).unwrap()
}

/// A pod with an ordinal, a revision and a state: `ready`, `starting`, `failed`, `leaving`.
fn pod(ordinal: i32, revision: &str, how: &str) -> Pod {
    let phase = match how {
        "starting" => "Pending",
        "failed" => "Failed",
        _ => "Running",
    };
    let name = format!("db-{ordinal}");
    let mut pod = json!({
        "metadata": { "name": name, "uid": name, "labels": {
            REVISION: revision, "statefulset.kubernetes.io/pod-name": name,
            "apps.kubernetes.io/pod-index": ordinal.to_string(),
        } },
        "status": { "phase": phase, "conditions": [{
            "type": "Ready", "status": if phase == "Running" { "True" } else { "False" },
            "lastTransitionTime": "2026-01-01T23:59:50Z",
        }] },
    });
    if how == "leaving" {
        pod["metadata"]["deletionTimestamp"] = json!(NOW);
    }
    serde_json::from_value(pod).unwrap()
}

/// The plan in short: `+1` creates, `-1` deletes, `!1` replaces, `~1` labels.
fn next(set: &StatefulSet, pods: &[Pod]) -> Vec<String> {
    let by_ordinal = pods.iter().filter_map(|pod| Some((identity::ordinal(set, pod)?, pod))).collect();
    let steps = steps(set, &Shape::of(set), &by_ordinal, "new", NOW.parse().unwrap());
    let number = |pod: &Pod| identity::ordinal(set, pod).unwrap();
    steps
        .iter()
        .map(|step| match step {
            Step::Create(ordinal) => format!("+{ordinal}"),
            Step::Delete(pod) => format!("-{}", number(pod)),
            Step::Replace(pod) => format!("!{}", number(pod)),
            Step::Label(pod) => format!("~{}", number(pod)),
        })
        .collect()
}

fn none() -> Vec<String> {
    Vec::new()
}

#[test]
fn an_ordered_set_scales_one_pod_at_a_time() {
    let set = set(2, &json!({}));
    assert_eq!(next(&set, &[]), ["+0"]);
    assert_eq!(next(&set, &[pod(0, "new", "starting")]), none());
    assert_eq!(next(&set, &[pod(0, "new", "ready")]), ["+1"]);
    let four = |third: &str, fourth: &str| {
        [pod(0, "new", "ready"), pod(1, "new", "ready"), pod(2, "new", third), pod(3, "new", fourth)]
    };
    assert_eq!(next(&set, &four("ready", "ready")), ["-3"]);
    assert_eq!(next(&set, &four("ready", "leaving")), none());
    assert_eq!(next(&set, &four("ready", "starting")), ["-3"]);
    assert_eq!(
        next(&set, &four("starting", "starting")),
        none(),
        "the first of them that is not well is waited for"
    );
    assert_eq!(next(&set, &four("ready", "ready")[..3]), ["-2"]);
}

#[test]
fn a_parallel_set_changes_all_pods_at_once() {
    let set = set(3, &json!({ "podManagementPolicy": "Parallel" }));
    assert_eq!(next(&set, &[]), ["+0", "+1", "+2"]);
    let pods = [pod(1, "new", "starting"), pod(3, "new", "ready"), pod(4, "new", "starting")];
    assert_eq!(next(&set, &pods), ["+0", "+2", "-4", "-3"]);
}

#[test]
fn ordinals_start_at_spec_ordinals_start() {
    let set = set(2, &json!({ "ordinals": { "start": 5 }, "podManagementPolicy": "Parallel" }));
    assert_eq!(next(&set, &[pod(0, "new", "ready"), pod(5, "new", "ready")]), ["+6", "-0"]);
}

#[test]
fn outdated_pods_are_replaced_in_descending_order_down_to_the_partition() {
    let all = |revisions: [&str; 3], last: &str| {
        [pod(0, revisions[0], "ready"), pod(1, revisions[1], "ready"), pod(2, revisions[2], last)]
    };
    let rolling = |more: &Value| {
        set(3, &json!({ "updateStrategy": { "type": "RollingUpdate", "rollingUpdate": more } }))
    };
    let plain = rolling(&json!({ "partition": 0 }));
    assert_eq!(next(&plain, &all(["old", "old", "old"], "ready")), ["-2"]);
    assert_eq!(next(&plain, &all(["old", "old", "old"], "leaving")), none());
    assert_eq!(next(&plain, &all(["old", "old", "new"], "starting")), none());
    assert_eq!(next(&plain, &all(["old", "old", "new"], "ready")), ["-1"]);
    assert_eq!(next(&rolling(&json!({ "partition": 2 })), &all(["old", "old", "new"], "ready")), none());
    assert_eq!(next(&rolling(&json!({ "partition": 9 })), &all(["old", "old", "old"], "ready")), none());
    assert_eq!(
        next(&rolling(&json!({ "maxUnavailable": 2 })), &all(["old", "old", "old"], "ready")),
        ["-2", "-1"]
    );
    assert_eq!(
        next(&rolling(&json!({ "maxUnavailable": "10%" })), &all(["old", "old", "old"], "ready")),
        ["-2"]
    );
    let waits = set(3, &json!({ "updateStrategy": { "type": "OnDelete" } }));
    assert_eq!(next(&waits, &all(["old", "old", "old"], "ready")), none());
    let shape = Shape::of(&rolling(&json!({ "partition": 2 })));
    assert!(shape.keeps_old(1) && !shape.keeps_old(2));
    assert!(!Shape::of(&waits).keeps_old(0));
}

#[test]
fn finished_pods_are_replaced_and_adopted_ones_labelled() {
    let ordered = set(2, &json!({}));
    assert_eq!(next(&ordered, &[pod(0, "new", "failed"), pod(1, "new", "ready")]), ["!0"]);
    let mut adopted = pod(0, "new", "ready");
    adopted.metadata.labels.as_mut().unwrap().remove("apps.kubernetes.io/pod-index");
    assert_eq!(next(&ordered, &[adopted]), ["~0", "+1"]);
}

#[test]
fn a_pod_is_available_after_min_ready_seconds() {
    let pods = [pod(0, "new", "ready")];
    assert_eq!(next(&set(2, &json!({ "minReadySeconds": 10 })), &pods), ["+1"]);
    assert_eq!(next(&set(2, &json!({ "minReadySeconds": 11 })), &pods), none());
}

proptest! {
    #[test]
    fn an_ordered_set_changes_one_pod_at_a_time_within_max_unavailable(
        pods in prop::collection::btree_map(0..8_i32, (any::<bool>(), 0..4_usize), 0..8),
        replicas in 0..6_i32,
        partition in 0..4_i32,
    ) {
        let pods: Vec<Pod> = pods
            .iter()
            .map(|(ordinal, (new, how))| {
                let how = ["ready", "starting", "failed", "leaving"][*how];
                pod(*ordinal, if *new { "new" } else { "old" }, how)
            })
            .collect();
        let strategy = json!({ "updateStrategy": { "rollingUpdate": { "partition": partition } } });
        let steps = next(&set(replicas, &strategy), &pods);
        prop_assert!(steps.len() <= 1, "{steps:?}");
        if let Some(kept) = steps.first().and_then(|step| step.strip_prefix('-'))
            && let Ok(ordinal) = kept.parse::<i32>()
        {
            prop_assert!(ordinal >= replicas || ordinal >= partition, "{steps:?}");
        }
    }
}
