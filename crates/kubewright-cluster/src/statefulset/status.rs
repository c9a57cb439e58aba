//! The status of a StatefulSet.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetStatus};
use k8s_openapi::api::core::v1::Pod;

use super::plan::Shape;
use crate::history::{self, REVISION};
use crate::pod::{self, Availability};

/// The current and the update revision.
#[derive(Debug, Clone, Copy)]
pub(super) struct Names<'a> {
    pub(super) current: &'a str,
    pub(super) update: &'a str,
}

/// The new status, and when it changes without an event.
#[derive(Debug)]
pub(super) struct Next {
    pub(super) status: StatefulSetStatus,
    pub(super) wake: Option<Duration>,
}

/// Computes the status.
pub(super) fn next<'a>(
    set: &StatefulSet,
    shape: &Shape,
    names: Names<'_>,
    collisions: i32,
    pods: impl Iterator<Item = &'a Pod>,
    now: Timestamp,
) -> Next {
    let (mut replicas, mut ready, mut available, mut current, mut updated) = (0, 0, 0, 0, 0);
    let mut wake = None::<Duration>;
    for pod in pods {
        replicas += 1;
        if pod::phase(pod) == "Running" && pod::is_ready(pod) {
            ready += 1;
            match pod::availability(pod, shape.min_ready, now) {
                Availability::Yes => available += 1,
                Availability::In(left) => wake = Some(wake.map_or(left, |wake| wake.min(left))),
                Availability::No => {}
            }
        }
        if !pod::is_terminating(pod) {
            let revision = history::label(pod, REVISION);
            current += i32::from(revision == Some(names.current));
            updated += i32::from(revision == Some(names.update));
        }
    }
    let wanted = i32::try_from(shape.ordinals.len()).unwrap_or(i32::MAX);
    // A rollout is complete when all desired pods exist, are updated and ready.
    let over = shape.is_rolling() && [replicas, ready, updated] == [wanted; 3];
    // Omit zero, as Go does.
    let some = |number: i32| Some(number).filter(|number| *number > 0);
    let status = StatefulSetStatus {
        replicas,
        ready_replicas: some(ready),
        available_replicas: Some(available),
        current_replicas: some(if over { updated } else { current }),
        updated_replicas: some(updated),
        current_revision: Some(if over { names.update } else { names.current }.to_owned()),
        update_revision: Some(names.update.to_owned()),
        collision_count: Some(collisions),
        observed_generation: set.metadata.generation,
        conditions: set.status.as_ref().and_then(|status| status.conditions.clone()),
    };
    Next { status, wake }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(revision: &str, ready_at: Option<i64>) -> Pod {
        let ready = ready_at.map(|at| {
            let since = Timestamp::from_second(at).unwrap().to_string();
            json!([{ "type": "Ready", "status": "True", "lastTransitionTime": since }])
        });
        serde_json::from_value(json!({
            "metadata": { "labels": { REVISION: revision } },
            "status": { "phase": "Running", "conditions": ready },
        }))
        .unwrap()
    }

    #[test]
    fn pods_are_counted_by_state_and_a_rollout_completes() {
        let set: StatefulSet = serde_json::from_value(json!({
            "metadata": { "generation": 4 },
            "spec": { "replicas": 2, "minReadySeconds": 10, "selector": {}, "template": {} },
        }))
        .unwrap();
        let names = Names { current: "old", update: "new" };
        let say = |pods: &[Pod]| {
            let now = Timestamp::from_second(105).unwrap();
            let next = next(&set, &Shape::of(&set), names, 1, pods.iter(), now);
            (serde_json::to_value(next.status).unwrap(), next.wake)
        };
        let (status, wake) = say(&[pod("old", None), pod("new", Some(100))]);
        assert_eq!(
            status,
            json!({ "replicas": 2, "readyReplicas": 1, "availableReplicas": 0, "currentReplicas": 1,
                "updatedReplicas": 1, "currentRevision": "old", "updateRevision": "new", "collisionCount": 1,
                "observedGeneration": 4 })
        );
        assert_eq!(wake, Some(Duration::from_secs(5)));
        let (status, wake) = say(&[pod("new", Some(90)), pod("new", Some(90))]);
        assert_eq!((&status["currentRevision"], &status["currentReplicas"]), (&json!("new"), &json!(2)));
        assert_eq!((&status["availableReplicas"], wake), (&json!(2), None));
    }
}
