//! Which pods go first when there are too many.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;

use crate::{kubelet, pod};

const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// The pods to delete, `count` of them: those that are missed least.
///
/// In this order: without a node, pending, not ready, of a low deletion cost, beside many of the same kind, ready for a
/// shorter time, restarted more often, younger. Times are compared by their magnitude, so that not always the youngest
/// goes, which is the one whose zone was just scaled up.
pub(super) fn to_delete<'a>(
    active: &'a [Arc<Pod>],
    related: &[Arc<Pod>],
    count: usize,
    now: Timestamp,
) -> Vec<&'a Pod> {
    let mut crowd = BTreeMap::<&str, usize>::new();
    for node in related.iter().filter_map(|pod| kubelet::node_name(pod)) {
        *crowd.entry(node).or_default() += 1;
    }
    let mut pods: Vec<&Pod> = active.iter().map(|pod| &**pod).collect();
    pods.sort_by_cached_key(|pod| {
        let node = kubelet::node_name(pod);
        let phase = match pod::phase(pod) {
            "Pending" => 0,
            "Running" => 2,
            _ => 1,
        };
        let neighbours = node.and_then(|node| crowd.get(node)).copied().unwrap_or_default();
        let ready = pod::ready_since(pod).map(|since| magnitude(since, now));
        let age = magnitude(pod::created(pod.metadata.creation_timestamp.as_ref()), now);
        (
            node.is_some(),
            phase,
            pod::is_ready(pod),
            cost(pod),
            Reverse(neighbours),
            ready,
            Reverse(pod::restarts(pod)),
            age,
            pod.metadata.uid.clone(),
        )
    });
    pods.truncate(count);
    pods
}

fn cost(pod: &Pod) -> i32 {
    let annotation = pod.metadata.annotations.as_ref().and_then(|annotations| annotations.get(DELETION_COST));
    annotation.and_then(|cost| cost.parse().ok()).unwrap_or_default()
}

/// How many times a time since then doubled; smaller is more recent.
fn magnitude(since: Timestamp, now: Timestamp) -> u32 {
    let nanos = u128::try_from(now.duration_since(since).as_nanos()).unwrap_or_default();
    nanos.checked_ilog2().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn now() -> Timestamp {
        "2026-01-02T00:00:00Z".parse().unwrap()
    }

    fn pod(name: &str, node: &str, phase: &str, ready_since: &str, cost: i32) -> Arc<Pod> {
        let ready = if ready_since.is_empty() { "False" } else { "True" };
        let since = if ready_since.is_empty() { "2026-01-01T00:00:00Z" } else { ready_since };
        let pod = json!({
            "metadata": {
                "name": name, "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z",
                "annotations": { DELETION_COST: cost.to_string() },
            },
            "spec": { "nodeName": node, "containers": [] },
            "status": {
                "phase": phase,
                "conditions": [{ "type": "Ready", "status": ready, "lastTransitionTime": since }],
            },
        });
        Arc::new(serde_json::from_value(pod).unwrap())
    }

    fn order(pods: &[Arc<Pod>]) -> Vec<String> {
        let doomed = to_delete(pods, pods, pods.len(), now());
        doomed.iter().map(|pod| pod.metadata.name.clone().unwrap()).collect()
    }

    #[test]
    fn those_that_are_missed_least_go_first() {
        let early = "2026-01-01T00:00:10Z";
        let pods = [
            pod("old", "a", "Running", early, 0),
            pod("dear", "b", "Running", early, 100),
            pod("young", "c", "Running", "2026-01-01T23:59:00Z", 0),
            pod("unready", "d", "Running", "", 0),
            pod("pending", "e", "Pending", "", 0),
            pod("homeless", "", "Pending", "", 0),
            pod("cheap", "f", "Running", early, -5),
            pod("crowded", "c", "Running", early, 0),
        ];
        assert_eq!(
            order(&pods),
            ["homeless", "pending", "unready", "cheap", "young", "crowded", "old", "dear"]
        );
    }

    proptest! {
        #[test]
        fn the_order_of_the_list_does_not_matter(
            pods in prop::collection::vec((0_u8..3, any::<bool>(), -2_i32..3), 1..12),
            rotate in 0_usize..12,
        ) {
            let mut pods: Vec<Arc<Pod>> = pods
                .iter()
                .enumerate()
                .map(|(number, (node, ready, cost))| {
                    let since = if *ready { "2026-01-01T00:00:10Z" } else { "" };
                    pod(&number.to_string(), &format!("n{node}"), "Running", since, *cost)
                })
                .collect();
            let before = order(&pods);
            let by = rotate % pods.len();
            pods.rotate_left(by);
            prop_assert_eq!(before, order(&pods));
        }
    }
}
