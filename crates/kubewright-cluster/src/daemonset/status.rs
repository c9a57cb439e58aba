//! The status of a DaemonSet.

use std::time::Duration;

use k8s_openapi::api::apps::v1::DaemonSetStatus;

use super::plan::View;
use super::target::Eligibility;
use crate::pod::{self, Availability};

/// The new status, and when it changes without an event.
#[derive(Debug)]
pub(super) struct Next {
    pub(super) status: DaemonSetStatus,
    pub(super) wake: Option<Duration>,
}

/// Computes the status. If a node has several pods, the oldest counts.
pub(super) fn next(view: &View<'_>, collisions: i32) -> Next {
    let (mut desired, mut current, mut stray, mut ready, mut updated, mut available) = (0, 0, 0, 0, 0, 0);
    let mut wake = None::<Duration>;
    for pod in view.pods.values().flatten() {
        if let Availability::In(left) = view.availability(pod) {
            wake = Some(wake.map_or(left, |wake| wake.min(left)));
        }
    }
    for (node, eligibility) in &view.nodes {
        let oldest = view.pods.get(node).and_then(|pods| pods.first());
        if *eligibility != Eligibility::ShouldRun {
            stray += i32::from(oldest.is_some());
            continue;
        }
        desired += 1;
        let Some(pod) = oldest else { continue };
        current += 1;
        ready += i32::from(pod::is_ready(pod));
        available += i32::from(view.availability(pod) == Availability::Yes);
        updated += i32::from(view.is_updated(pod));
    }
    // Omit zero, as Go does.
    let some = |number: i32| Some(number).filter(|number| *number > 0);
    let old = view.set.status.as_ref();
    let status = DaemonSetStatus {
        desired_number_scheduled: desired,
        current_number_scheduled: current,
        number_misscheduled: stray,
        number_ready: ready,
        updated_number_scheduled: some(updated),
        number_available: some(available),
        number_unavailable: some(desired - available),
        observed_generation: view.set.metadata.generation,
        collision_count: some(collisions),
        conditions: old.and_then(|status| status.conditions.clone()),
    };
    Next { status, wake }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::DaemonSet;
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::json;

    use super::*;

    #[test]
    fn nodes_are_counted_by_their_oldest_pod() {
        let set: DaemonSet = serde_json::from_value(json!({
            "metadata": { "generation": 2 },
            "spec": { "minReadySeconds": 10, "selector": {}, "template": {} },
        }))
        .unwrap();
        let pod = |node: &str, revision: &str, ready: i64| -> Pod {
            let since = jiff::Timestamp::from_second(ready).unwrap().to_string();
            serde_json::from_value(json!({
                "metadata": { "name": node, "labels": { "controller-revision-hash": revision } },
                "spec": { "nodeName": node, "containers": [] },
                "status": { "conditions": [{ "type": "Ready", "status": "True", "lastTransitionTime": since }] },
            }))
            .unwrap()
        };
        let pods = [pod("a", "new", 90), pod("b", "old", 100), pod("d", "old", 90), pod("gone", "old", 90)];
        let wanted = |node| (node, Eligibility::ShouldRun);
        let nodes = [wanted("a"), wanted("b"), wanted("c"), ("d", Eligibility::MayContinue)];
        let now = jiff::Timestamp::from_second(104).unwrap();
        let view = View::new(&set, nodes.into(), pods.iter(), "new", now);
        let next = next(&view, 0);
        assert_eq!(
            serde_json::to_value(next.status).unwrap(),
            json!({ "desiredNumberScheduled": 3, "currentNumberScheduled": 2, "numberMisscheduled": 1,
                "numberReady": 2, "updatedNumberScheduled": 1, "numberAvailable": 1, "numberUnavailable": 2,
                "observedGeneration": 2 })
        );
        assert_eq!(next.wake, Some(Duration::from_secs(6)));
    }
}
