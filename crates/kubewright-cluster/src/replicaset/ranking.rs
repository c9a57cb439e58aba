//! The order in which excess pods are deleted.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;

use crate::{kubelet, pod};

const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// The `count` pods to delete first.
///
/// The order is: not bound, pending, not ready, lower deletion cost, on nodes with more related pods, ready
/// for a shorter time, more restarts, younger. Times are compared on a logarithmic scale, as upstream, so
/// that the selection is not always the newest pods.
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

/// The base-2 logarithm of the time since `since`.
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
    fn excess_pods_are_ranked_like_upstream() {
        let early = "2026-01-01T00:00:10Z";
        let pods = [
            pod("old", "a", "Running", early, 0),
            pod("dear", "b", "Running", early, 100),
            pod("young", "c", "Running", "2026-01-01T23:59:00Z", 0),
            pod("unready", "d", "Running", "", 0),
            pod("pending", "e", "Pending", "", 0),
            pod("unbound", "", "Pending", "", 0),
            pod("cheap", "f", "Running", early, -5),
            pod("crowded", "c", "Running", early, 0),
        ];
        assert_eq!(
            order(&pods),
            ["unbound", "pending", "unready", "cheap", "young", "crowded", "old", "dear"]
        );
    }

    proptest! {
        #[test]
        fn the_ranking_is_independent_of_the_input_order(
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
