//! Plans for nodes and pods.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const NOW: &str = "2026-01-02T00:00:00Z";

fn set(strategy: &Value) -> DaemonSet {
    serde_json::from_value(json!({
        "metadata": { "name": "log" },
        "spec": { "selector": {}, "template": {}, "updateStrategy": strategy },
    }))
    .unwrap()
}

fn rolling(surge: i32, unavailable: i32) -> DaemonSet {
    set(&json!({ "rollingUpdate": { "maxSurge": surge, "maxUnavailable": unavailable } }))
}

/// A pod with a name that starts with its node, a revision, and a state: `ready`, `starting`, `failed`,
/// `leaving`.
fn pod(name: &str, revision: &str, how: &str) -> Pod {
    let phase = match how {
        "starting" => "Pending",
        "failed" => "Failed",
        _ => "Running",
    };
    let mut pod = json!({
        "metadata": { "name": name, "labels": { REVISION: revision }, "creationTimestamp": "2026-01-01T00:00:00Z" },
        "spec": { "nodeName": &name[..1], "containers": [] },
        "status": { "phase": phase, "conditions": [{
            "type": "Ready", "status": if phase == "Running" { "True" } else { "False" },
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }] },
    });
    if how == "leaving" {
        pod["metadata"]["deletionTimestamp"] = json!(NOW);
    }
    serde_json::from_value(pod).unwrap()
}

/// The plan in short: `+a` creates a pod on a node, `-a1` deletes one, `!a1` deletes a finished one.
fn next(set: &DaemonSet, nodes: &[(&str, Eligibility)], pods: &[Pod]) -> Vec<String> {
    let nodes = nodes.iter().copied().collect();
    let view = View::new(set, nodes, pods.iter(), "new", NOW.parse().unwrap());
    let plan = plan(&view);
    let name = |pod: &&Pod| pod.metadata.name.clone().unwrap();
    let ended: Vec<String> = plan.ended.iter().map(name).collect();
    let deleted = plan.delete.iter().map(name).map(|name| {
        let mark = if ended.contains(&name) { '!' } else { '-' };
        format!("{mark}{name}")
    });
    plan.create.iter().map(|node| format!("+{node}")).chain(deleted).collect()
}

fn none() -> Vec<String> {
    Vec::new()
}

const THREE: [(&str, Eligibility); 3] =
    [("a", Eligibility::ShouldRun), ("b", Eligibility::ShouldRun), ("c", Eligibility::ShouldRun)];

#[test]
fn every_eligible_node_has_one_pod() {
    let nodes = [
        ("a", Eligibility::ShouldRun),
        ("b", Eligibility::ShouldRun),
        ("c", Eligibility::MayContinue),
        ("d", Eligibility::MayContinue),
        ("e", Eligibility::MustNotRun),
    ];
    let mut waiting = pod("z1", "new", "starting");
    waiting.spec = serde_json::from_value(json!({
        "containers": [],
        "affinity": { "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [
            { "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["z"] }] },
        ] } } },
    }))
    .unwrap();
    let pods = [
        pod("a1", "new", "ready"),
        pod("a2", "new", "ready"),
        pod("c1", "new", "ready"),
        pod("e1", "new", "ready"),
        pod("y1", "new", "ready"),
        waiting,
    ];
    assert_eq!(next(&rolling(0, 1), &nodes, &pods), ["+b", "-a2", "-e1", "-z1"]);
}

#[test]
fn finished_pods_are_deleted_and_terminating_ones_are_waited_for() {
    let pods = [pod("a1", "new", "failed"), pod("b1", "new", "leaving"), pod("c1", "new", "ready")];
    assert_eq!(next(&rolling(0, 1), &THREE, &pods), ["!a1"]);
    assert_eq!(next(&rolling(0, 1), &THREE, &pods[1..]), ["+a"]);
    let mut held = pods[0].clone();
    held.metadata.deletion_timestamp.clone_from(&pods[1].metadata.deletion_timestamp);
    let pods = [held, pods[2].clone(), pod("b2", "new", "ready")];
    assert_eq!(next(&rolling(0, 1), &THREE, &pods), ["+a"], "it has finished, and only a finalizer keeps it");
}

#[test]
fn old_pods_are_replaced_within_max_unavailable() {
    let pods = |revisions: [&str; 3], how: [&str; 3]| {
        [pod("a1", revisions[0], how[0]), pod("b1", revisions[1], how[1]), pod("c1", revisions[2], how[2])]
    };
    let (old, ready) = (["old"; 3], ["ready"; 3]);
    assert_eq!(next(&rolling(0, 1), &THREE, &pods(old, ready)), ["-a1"]);
    assert_eq!(next(&rolling(0, 2), &THREE, &pods(old, ready)), ["-a1", "-b1"]);
    assert_eq!(next(&rolling(0, 1), &THREE, &pods(old, ["leaving", "ready", "ready"])), none());
    assert_eq!(
        next(&rolling(0, 1), &THREE, &pods(["new", "old", "old"], ["starting", "ready", "ready"])),
        none()
    );
    assert_eq!(next(&rolling(0, 1), &THREE, &pods(["new", "old", "old"], ready)), ["-b1"]);
    // Unavailable pods are always deleted, and already count as unavailable.
    assert_eq!(
        next(&rolling(0, 1), &THREE, &pods(["new", "old", "old"], ["starting", "ready", "starting"])),
        ["-c1"]
    );
    let percent = set(&json!({ "rollingUpdate": { "maxSurge": 0, "maxUnavailable": "50%" } }));
    assert_eq!(next(&percent, &THREE, &pods(old, ready)), ["-a1", "-b1"], "1.5 is rounded up");
    assert_eq!(next(&set(&json!({ "type": "OnDelete" })), &THREE, &pods(old, ready)), none());
}

#[test]
fn surge_creates_new_pods_before_deleting_old_ones() {
    let set = rolling(1, 0);
    let (a, b, c) = (pod("a1", "old", "ready"), pod("b1", "old", "ready"), pod("c1", "old", "ready"));
    assert_eq!(next(&set, &THREE, &[a.clone(), b.clone(), c.clone()]), ["+a"]);
    let surging = |how| [a.clone(), pod("a2", "new", how), b.clone(), c.clone()];
    assert_eq!(next(&set, &THREE, &surging("starting")), none());
    assert_eq!(next(&set, &THREE, &surging("ready")), ["-a1"]);
    let useless = [pod("a1", "old", "starting"), pod("a2", "new", "starting"), b.clone(), c.clone()];
    assert_eq!(next(&set, &THREE, &useless), ["-a1"]);
    let done = [pod("a2", "new", "ready"), b, pod("c1", "old", "starting")];
    assert_eq!(next(&set, &THREE, &done), ["+c", "+b"], "what is of no use is replaced in any case");
}

proptest! {
    #[test]
    fn a_rollout_keeps_within_max_unavailable(
        hows in prop::collection::vec((any::<bool>(), 0..3_usize), 1..9),
        unavailable in 1..4_i32,
    ) {
        let names: Vec<String> = (0..hows.len()).map(|number| number.to_string()).collect();
        let nodes: Vec<(&str, Eligibility)> = names.iter().map(|name| (name.as_str(), Eligibility::ShouldRun)).collect();
        let pods: Vec<Pod> = hows
            .iter()
            .zip(&names)
            .map(|((new, how), name)| {
                pod(&format!("{name}x"), if *new { "new" } else { "old" }, ["ready", "starting", "leaving"][*how])
            })
            .collect();
        let available = |pod: &&Pod| pod::is_ready(pod) && !pod::is_terminating(pod);
        let before = pods.iter().filter(available).count();
        let steps = next(&rolling(0, unavailable), &nodes, &pods);
        let after = pods
            .iter()
            .filter(available)
            .filter(|pod| !steps.contains(&format!("-{}", pod.metadata.name.as_ref().unwrap())))
            .count();
        let least = pods.len().saturating_sub(usize::try_from(unavailable).unwrap());
        prop_assert!(after >= least.min(before), "{before} to {after}: {steps:?}");
    }
}
