//! The status of a ReplicaSet.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetCondition, ReplicaSetStatus};
use k8s_openapi::api::core::v1::Pod;

use crate::node::whole;
use crate::pod::{self, Availability};

const REPLICA_FAILURE: &str = "ReplicaFailure";

/// The failed operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    Create,
    Delete,
}

/// The new status, and when it changes without an event.
#[derive(Debug)]
pub(crate) struct Next {
    pub(crate) status: ReplicaSetStatus,
    pub(crate) wake: Option<Duration>,
}

/// The desired replicas.
pub(super) fn wanted(set: &ReplicaSet) -> i32 {
    set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1)
}

/// Computes the status.
pub(crate) fn next(
    set: &ReplicaSet,
    active: &[Arc<Pod>],
    terminating: usize,
    failure: Option<&(Failure, String)>,
    now: Timestamp,
) -> Next {
    let spec = set.spec.as_ref();
    let min_ready = spec.and_then(|spec| spec.min_ready_seconds).unwrap_or_default();
    let template = spec.and_then(|spec| spec.template.as_ref()?.metadata.as_ref()?.labels.clone());
    let template = template.unwrap_or_default();
    let labels =
        |pod: &Pod, name: &String| pod.metadata.labels.as_ref().and_then(|labels| labels.get(name)).cloned();
    let fully = active
        .iter()
        .filter(|pod| template.iter().all(|(name, value)| labels(pod, name).as_ref() == Some(value)));
    let availabilities: Vec<Availability> =
        active.iter().map(|pod| pod::availability(pod, min_ready, now)).collect();
    let wake = availabilities
        .iter()
        .filter_map(|it| if let Availability::In(left) = it { Some(*left) } else { None });
    let count = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
    // Omit zero, as Go does.
    let some = |number: usize| Some(count(number)).filter(|number| *number > 0);
    let old = set.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
    Next {
        wake: wake.min(),
        status: ReplicaSetStatus {
            replicas: count(active.len()),
            fully_labeled_replicas: some(fully.count()),
            ready_replicas: some(active.iter().filter(|pod| pod::is_ready(pod)).count()),
            available_replicas: some(availabilities.iter().filter(|it| **it == Availability::Yes).count()),
            terminating_replicas: Some(count(terminating)),
            observed_generation: set.metadata.generation,
            conditions: conditions(old, failure, now),
        },
    }
}

fn conditions(
    mut old: Vec<ReplicaSetCondition>,
    failure: Option<&(Failure, String)>,
    now: Timestamp,
) -> Option<Vec<ReplicaSetCondition>> {
    let failed = old.iter().any(|condition| condition.type_ == REPLICA_FAILURE);
    match failure {
        // The first failure stays until it is resolved.
        Some((failure, message)) if !failed => old.push(ReplicaSetCondition {
            type_: REPLICA_FAILURE.to_owned(),
            status: "True".to_owned(),
            reason: Some(
                match failure {
                    Failure::Create => "FailedCreate",
                    Failure::Delete => "FailedDelete",
                }
                .to_owned(),
            ),
            message: Some(message.clone()),
            last_transition_time: Some(whole(now)),
        }),
        None => old.retain(|condition| condition.type_ != REPLICA_FAILURE),
        Some(_) => {}
    }
    (!old.is_empty()).then_some(old)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    #[test]
    fn pods_are_counted_by_state() {
        let set: ReplicaSet = serde_json::from_value(json!({
            "metadata": { "generation": 3 },
            "spec": { "minReadySeconds": 10, "selector": {}, "template": { "metadata": { "labels": { "a": "1" } } } },
        }))
        .unwrap();
        let pod = |labels, ready: &str| -> Arc<Pod> {
            let since = at(100).to_string();
            Arc::new(serde_json::from_value(json!({
                "metadata": { "labels": labels },
                "status": { "conditions": [{ "type": "Ready", "status": ready, "lastTransitionTime": since }] },
            })).unwrap())
        };
        let pods = [pod(json!({ "a": "1", "b": "2" }), "True"), pod(json!({ "b": "2" }), "False")];
        let soon = next(&set, &pods, 4, None, at(103));
        assert_eq!(soon.wake, Some(Duration::from_secs(7)));
        let then = next(&set, &pods, 4, None, at(110));
        assert_eq!(then.wake, None);
        let status = serde_json::to_value(then.status).unwrap();
        assert_eq!(
            status,
            json!({ "replicas": 2, "fullyLabeledReplicas": 1, "readyReplicas": 1, "availableReplicas": 1,
                "terminatingReplicas": 4, "observedGeneration": 3 })
        );
    }

    #[test]
    fn a_failure_is_reported_until_resolved() {
        let first = conditions(Vec::new(), Some(&(Failure::Create, "full".to_owned())), at(1)).unwrap();
        assert_eq!(first[0].reason.as_deref(), Some("FailedCreate"));
        let again = conditions(first.clone(), Some(&(Failure::Delete, "other".to_owned())), at(2)).unwrap();
        assert_eq!(again, first);
        assert_eq!(conditions(again, None, at(3)), None);
    }
}
