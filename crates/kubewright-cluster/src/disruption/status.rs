//! Computes the status of a PodDisruptionBudget. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::deployment::scaled;
use crate::node::whole;
use crate::pod;

const ALLOWED: &str = "DisruptionAllowed";
/// How long an evicted pod is expected to be deleted. Afterwards it counts again.
const DELETION_TIMEOUT: Duration = Duration::from_mins(2);

/// The new status and its consequences.
#[derive(Debug)]
pub(super) struct Next {
    pub(super) status: PodDisruptionBudgetStatus,
    /// Pods that were evicted but not deleted in time.
    pub(super) not_deleted: Vec<Arc<Pod>>,
    pub(super) wake: Option<Duration>,
}

/// Whether the budget depends on the scale of the pods' controllers.
pub(super) fn needs_scale(budget: &PodDisruptionBudget) -> bool {
    budget.spec.as_ref().is_some_and(|spec| {
        spec.max_unavailable.is_some() || matches!(spec.min_available, Some(IntOrString::String(_)))
    })
}

/// The status for these pods, whose controllers have a total scale of `scale`.
pub(super) fn next(budget: &PodDisruptionBudget, pods: &[Arc<Pod>], scale: i32, now: Timestamp) -> Next {
    let old = budget.status.clone().unwrap_or_default();
    let (expected, desired) = expected(budget, pods.len(), scale);
    let mut disrupted = BTreeMap::new();
    let (mut healthy, mut not_deleted, mut wake) = (0, Vec::new(), None::<Duration>);
    for pod in pods.iter().filter(|pod| !pod::is_terminating(pod)) {
        let name = pod.metadata.name.clone().unwrap_or_default();
        let evicted = old.disrupted_pods.as_ref().and_then(|disrupted| disrupted.get(&name));
        match evicted.map(|at| (at, pod::until(at.0, DELETION_TIMEOUT, now))) {
            Some((at, Some(left))) => {
                disrupted.insert(name, at.clone());
                wake = Some(wake.map_or(left, |wake| wake.min(left)));
                continue;
            }
            Some((_, None)) => not_deleted.push(pod.clone()),
            None => {}
        }
        healthy += i32::from(pod::is_ready(pod));
    }
    // A budget without pods allows nothing: pods may appear before the next sync.
    let allowed = if expected > 0 { (healthy - desired).max(0) } else { 0 };
    let generation = budget.metadata.generation;
    let (value, reason) =
        if allowed > 0 { ("True", "SufficientPods") } else { ("False", "InsufficientPods") };
    let condition = condition(value, reason, "", generation, now);
    // Numbers are optional since Kubernetes 1.36.
    let status = PodDisruptionBudgetStatus {
        conditions: Some(with_condition(old.conditions.unwrap_or_default(), condition)),
        current_healthy: healthy.into(),
        desired_healthy: desired.into(),
        disrupted_pods: Some(disrupted).filter(|disrupted| !disrupted.is_empty()),
        disruptions_allowed: allowed.into(),
        expected_pods: expected.into(),
        observed_generation: generation,
    };
    Next { status, not_deleted, wake }
}

/// The status if the scale cannot be determined: no disruptions are allowed.
pub(super) fn failed(budget: &PodDisruptionBudget, why: &str, now: Timestamp) -> Next {
    let mut status = budget.status.clone().unwrap_or_default();
    status.disruptions_allowed = 0.into();
    let condition = condition("False", "SyncFailed", why, status.observed_generation, now);
    status.conditions = Some(with_condition(status.conditions.unwrap_or_default(), condition));
    Next { status, not_deleted: Vec::new(), wake: None }
}

/// The expected pods, and how many of them must be healthy.
fn expected(budget: &PodDisruptionBudget, pods: usize, scale: i32) -> (i32, i32) {
    let Some(spec) = &budget.spec else { return (0, 0) };
    match (&spec.max_unavailable, &spec.min_available) {
        (Some(most), _) => (scale, (scale - scaled(most, scale, true)).max(0)),
        (None, Some(least @ IntOrString::String(_))) => (scale, scaled(least, scale, true)),
        (None, Some(IntOrString::Int(least))) => (i32::try_from(pods).unwrap_or(i32::MAX), *least),
        (None, None) => (0, 0),
    }
}

fn condition(
    status: &str,
    reason: &str,
    message: &str,
    observed_generation: Option<i64>,
    now: Timestamp,
) -> Condition {
    Condition {
        type_: ALLOWED.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        observed_generation,
        last_transition_time: whole(now),
    }
}

/// Replaces the condition of the same type. `lastTransitionTime` changes only with the status.
fn with_condition(mut conditions: Vec<Condition>, mut condition: Condition) -> Vec<Condition> {
    match conditions.iter_mut().find(|old| old.type_ == condition.type_) {
        Some(old) => {
            if old.status == condition.status {
                condition.last_transition_time = Time(old.last_transition_time.0);
            }
            *old = condition;
        }
        None => conditions.push(condition),
    }
    conditions
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn budget(spec: &Value, status: &Value) -> PodDisruptionBudget {
        let budget = json!({ "metadata": { "name": "b", "generation": 3 }, "spec": spec, "status": status });
        serde_json::from_value(budget).unwrap()
    }

    fn pods(ready: usize, unready: usize) -> Vec<Arc<Pod>> {
        let pod = |(number, ready): (usize, bool)| {
            let status = if ready { "True" } else { "False" };
            let pod = json!({
                "metadata": { "name": format!("p{number}") },
                "status": { "conditions": [{ "type": "Ready", "status": status }] },
            });
            Arc::new(serde_json::from_value(pod).unwrap())
        };
        (0..ready + unready).map(|number| (number, number < ready)).map(pod).collect()
    }

    /// Expected, healthy, desired, allowed.
    fn numbers(spec: &Value, pods: &[Arc<Pod>], scale: i32) -> [i32; 4] {
        let status = next(&budget(spec, &Value::Null), pods, scale, Timestamp::UNIX_EPOCH).status;
        assert_eq!(status.observed_generation, Some(3));
        [status.expected_pods, status.current_healthy, status.desired_healthy, status.disruptions_allowed]
            .map(Option::unwrap)
    }

    #[test]
    fn percentages_are_relative_to_the_scale_and_round_up() {
        assert_eq!(numbers(&json!({ "minAvailable": 2 }), &pods(3, 1), 0), [4, 3, 2, 1]);
        assert_eq!(numbers(&json!({ "minAvailable": 5 }), &pods(3, 0), 0), [3, 3, 5, 0]);
        assert_eq!(numbers(&json!({ "minAvailable": "50%" }), &pods(3, 0), 5), [5, 3, 3, 0]);
        assert_eq!(numbers(&json!({ "maxUnavailable": 1 }), &pods(3, 0), 3), [3, 3, 2, 1]);
        assert_eq!(numbers(&json!({ "maxUnavailable": "30%" }), &pods(5, 0), 5), [5, 5, 3, 2]);
        assert_eq!(numbers(&json!({ "maxUnavailable": 9 }), &pods(2, 0), 2), [2, 2, 0, 2]);
        assert_eq!(numbers(&json!({ "minAvailable": 0 }), &[], 0), [0, 0, 0, 0]);
    }

    #[test]
    fn an_evicted_pod_counts_again_if_it_is_not_deleted_in_time() {
        let status = json!({
            "disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0,
            "disruptedPods": { "p0": "1970-01-01T00:00:00Z", "gone": "1970-01-01T00:00:00Z" },
        });
        let budget = budget(&json!({ "minAvailable": 1 }), &status);
        let soon = next(&budget, &pods(3, 0), 0, Timestamp::from_second(30).unwrap());
        assert_eq!((soon.status.current_healthy, soon.wake), (Some(2), Some(Duration::from_secs(90))));
        assert_eq!(soon.status.disrupted_pods.unwrap().into_keys().collect::<Vec<_>>(), ["p0"]);
        let late = next(&budget, &pods(3, 0), 0, Timestamp::from_second(120).unwrap());
        assert_eq!((late.status.current_healthy, late.wake, late.not_deleted.len()), (Some(3), None, 1));
        assert_eq!(late.status.disrupted_pods, None);
    }

    #[test]
    fn an_unknown_scale_allows_no_disruptions() {
        let before =
            next(&budget(&json!({ "minAvailable": 1 }), &Value::Null), &pods(3, 0), 0, Timestamp::UNIX_EPOCH);
        let mut budget = budget(&json!({ "maxUnavailable": 1 }), &Value::Null);
        budget.status = Some(before.status);
        let later = Timestamp::from_second(9).unwrap();
        let failed = failed(&budget, "jobs.batch does not implement the scale subresource", later).status;
        assert_eq!((failed.disruptions_allowed, failed.current_healthy), (Some(0), Some(3)));
        let condition = &failed.conditions.unwrap()[0];
        assert_eq!((condition.status.as_str(), condition.reason.as_str()), ("False", "SyncFailed"));
        assert_eq!(condition.last_transition_time.0, later);
    }
}
