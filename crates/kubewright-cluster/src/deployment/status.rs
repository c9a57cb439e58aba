//! The status of a Deployment: numbers, and the conditions Available, Progressing and ReplicaFailure.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet};

use super::rolling::Limits;
use crate::node::whole;
use crate::pod::until;

pub(super) const PROGRESSING: &str = "Progressing";
const AVAILABLE: &str = "Available";
const REPLICA_FAILURE: &str = "ReplicaFailure";
const COMPLETE: &str = "NewReplicaSetAvailable";
const TIMED_OUT: &str = "ProgressDeadlineExceeded";
const PAUSED: &str = "DeploymentPaused";

/// Status, reason and message of a condition.
pub(super) struct ConditionValue<'a> {
    pub(super) status: &'static str,
    pub(super) reason: &'a str,
    pub(super) message: String,
}

/// A condition, if present.
pub(super) fn find<'a>(status: &'a DeploymentStatus, type_: &str) -> Option<&'a DeploymentCondition> {
    status.conditions.iter().flatten().find(|condition| condition.type_ == type_)
}

/// Sets a condition. Does nothing if status and reason are unchanged.
pub(super) fn set(status: &mut DeploymentStatus, type_: &str, value: ConditionValue<'_>, now: Timestamp) {
    let old = find(status, type_).cloned();
    let same = old.as_ref().filter(|old| old.status == value.status);
    if same.is_some_and(|old| old.reason.as_deref() == Some(value.reason)) {
        return;
    }
    let transition = same.and_then(|old| old.last_transition_time.clone());
    remove(status, type_);
    status.conditions.get_or_insert_default().push(DeploymentCondition {
        type_: type_.to_owned(),
        status: value.status.to_owned(),
        reason: Some(value.reason.to_owned()),
        message: Some(value.message),
        last_update_time: Some(whole(now)),
        last_transition_time: transition.or_else(|| Some(whole(now))),
    });
}

fn remove(status: &mut DeploymentStatus, type_: &str) {
    if let Some(conditions) = &mut status.conditions {
        conditions.retain(|condition| condition.type_ != type_);
    }
}

/// `progressDeadlineSeconds`; `None` if infinite.
pub(super) fn deadline(deployment: &Deployment) -> Option<Duration> {
    let seconds =
        deployment.spec.as_ref()?.progress_deadline_seconds.filter(|seconds| *seconds != i32::MAX)?;
    Some(Duration::from_secs(u64::try_from(seconds).unwrap_or_default()))
}

/// Sets the Progressing condition when a Deployment is paused or resumed.
pub(super) fn set_paused(deployment: &Deployment, status: &mut DeploymentStatus, now: Timestamp) {
    let paused = deployment.spec.as_ref().is_some_and(|spec| spec.paused == Some(true));
    let reason = find(status, PROGRESSING).and_then(|condition| condition.reason.as_deref());
    if deadline(deployment).is_none() || reason == Some(TIMED_OUT) {
        return;
    }
    let value = match (paused, reason == Some(PAUSED)) {
        (true, false) => (PAUSED, "Deployment is paused"),
        (false, true) => ("DeploymentResumed", "Deployment is resumed"),
        _ => return,
    };
    let value = ConditionValue { status: "Unknown", reason: value.0, message: value.1.to_owned() };
    set(status, PROGRESSING, value, now);
}

/// Computes the numbers and the Available condition.
pub(super) fn numbers(
    deployment: &Deployment,
    old: &DeploymentStatus,
    new_set: Option<&ReplicaSet>,
    all: &[&ReplicaSet],
    now: Timestamp,
) -> DeploymentStatus {
    let sum = |of: fn(&k8s_openapi::api::apps::v1::ReplicaSetStatus) -> i32| -> i32 {
        all.iter().filter_map(|set| set.status.as_ref()).map(of).sum()
    };
    // Omit zero, as Go does.
    let some = |number: i32| Some(number).filter(|number| *number > 0);
    let (replicas, available) = (sum(|it| it.replicas), sum(|it| it.available_replicas.unwrap_or_default()));
    let updated = new_set.and_then(|set| set.status.as_ref()).map_or(0, |status| status.replicas);
    let mut status = DeploymentStatus {
        observed_generation: deployment.metadata.generation,
        replicas: some(replicas),
        updated_replicas: some(updated),
        ready_replicas: some(sum(|it| it.ready_replicas.unwrap_or_default())),
        available_replicas: some(available),
        unavailable_replicas: some(replicas - available),
        terminating_replicas: Some(sum(|it| it.terminating_replicas.unwrap_or_default())),
        ..old.clone()
    };
    let limits = Limits::of(deployment);
    let value = if available >= limits.wanted - limits.unavailable {
        ConditionValue {
            status: "True",
            reason: "MinimumReplicasAvailable",
            message: "Deployment has minimum availability.".to_owned(),
        }
    } else {
        ConditionValue {
            status: "False",
            reason: "MinimumReplicasUnavailable",
            message: "Deployment does not have minimum availability.".to_owned(),
        }
    };
    set(&mut status, AVAILABLE, value, now);
    status
}

/// Whether the rollout is complete.
pub(super) fn is_complete(deployment: &Deployment, status: &DeploymentStatus) -> bool {
    let wanted = Limits::of(deployment).wanted;
    let all = [status.updated_replicas, status.replicas, status.available_replicas];
    all.iter().all(|number| number.unwrap_or_default() == wanted)
        && status.observed_generation >= deployment.metadata.generation
}

/// Whether the rollout progressed between two statuses.
fn progressed(old: &DeploymentStatus, new: &DeploymentStatus) -> bool {
    let of = |number: Option<i32>| number.unwrap_or_default();
    let outdated = |status: &DeploymentStatus| of(status.replicas) - of(status.updated_replicas);
    of(new.updated_replicas) > of(old.updated_replicas)
        || outdated(new) < outdated(old)
        || of(new.ready_replicas) > of(old.ready_replicas)
        || of(new.available_replicas) > of(old.available_replicas)
}

/// Updates the Progressing condition in `new`.
pub(super) fn set_progressing(
    deployment: &Deployment,
    old: &DeploymentStatus,
    new: &mut DeploymentStatus,
    new_set: Option<&ReplicaSet>,
    all: &[&ReplicaSet],
    now: Timestamp,
) {
    let Some(deadline) = deadline(deployment) else {
        remove(new, PROGRESSING);
        return set_replica_failure(new, new_set, all);
    };
    let current = find(old, PROGRESSING).cloned();
    let settled = new.replicas == new.updated_replicas
        && current.as_ref().is_some_and(|it| it.reason.as_deref() == Some(COMPLETE));
    if !settled {
        let what = match new_set {
            Some(set) => format!("ReplicaSet {:?}", set.metadata.name.as_deref().unwrap_or_default()),
            None => format!("Deployment {:?}", deployment.metadata.name.as_deref().unwrap_or_default()),
        };
        if is_complete(deployment, new) {
            let message = format!("{what} has successfully progressed.");
            set(new, PROGRESSING, ConditionValue { status: "True", reason: COMPLETE, message }, now);
        } else if progressed(old, new) {
            let message = format!("{what} is progressing.");
            // Each progress restarts the deadline. The transition time stays if the status was already
            // `True`.
            let since = current.filter(|it| it.status == "True").and_then(|it| it.last_transition_time);
            remove(new, PROGRESSING);
            set(
                new,
                PROGRESSING,
                ConditionValue { status: "True", reason: "ReplicaSetUpdated", message },
                now,
            );
            let conditions = new.conditions.get_or_insert_default();
            if let (Some(since), Some(condition)) = (since, conditions.last_mut()) {
                condition.last_transition_time = Some(since);
            }
        } else if is_late(current.as_ref(), deadline, now) {
            let message = format!("{what} has timed out progressing.");
            set(new, PROGRESSING, ConditionValue { status: "False", reason: TIMED_OUT, message }, now);
        }
    }
    set_replica_failure(new, new_set, all);
}

fn is_late(progressing: Option<&DeploymentCondition>, deadline: Duration, now: Timestamp) -> bool {
    let Some(condition) = progressing else { return false };
    match condition.reason.as_deref() {
        Some(COMPLETE) => false,
        Some(TIMED_OUT) => true,
        _ => condition.last_update_time.as_ref().is_some_and(|since| until(since.0, deadline, now).is_none()),
    }
}

/// Copies the ReplicaFailure condition of a ReplicaSet, preferring the current one.
fn set_replica_failure(status: &mut DeploymentStatus, new_set: Option<&ReplicaSet>, all: &[&ReplicaSet]) {
    remove(status, REPLICA_FAILURE);
    let sets = new_set.into_iter().chain(all.iter().copied());
    let failure = sets
        .flat_map(|set| set.status.iter().flat_map(|status| status.conditions.iter().flatten()))
        .find(|condition| condition.type_ == REPLICA_FAILURE && condition.status == "True");
    if let Some(failure) = failure {
        status.conditions.get_or_insert_default().push(DeploymentCondition {
            type_: REPLICA_FAILURE.to_owned(),
            status: failure.status.clone(),
            reason: failure.reason.clone(),
            message: failure.message.clone(),
            last_transition_time: failure.last_transition_time.clone(),
            last_update_time: failure.last_transition_time.clone(),
        });
    }
}

/// The time until the progress deadline is exceeded.
pub(super) fn deadline_in(
    deployment: &Deployment,
    status: &DeploymentStatus,
    now: Timestamp,
) -> Option<Duration> {
    let deadline = deadline(deployment)?;
    let condition = find(status, PROGRESSING)?;
    if matches!(condition.reason.as_deref(), Some(TIMED_OUT | COMPLETE | PAUSED)) {
        return None;
    }
    until(condition.last_update_time.as_ref()?.0, deadline, now)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn deployment() -> Deployment {
        serde_json::from_value(json!({
            "metadata": { "name": "web", "generation": 1 },
            "spec": {
                "replicas": 2, "progressDeadlineSeconds": 60, "selector": {}, "template": {},
                "strategy": { "rollingUpdate": { "maxSurge": 1, "maxUnavailable": 0 } },
            },
        }))
        .unwrap()
    }

    fn set_of(replicas: i32, available: i32) -> ReplicaSet {
        serde_json::from_value(json!({
            "metadata": { "name": "web-1" },
            "status": { "replicas": replicas, "readyReplicas": available, "availableReplicas": available },
        }))
        .unwrap()
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    /// The next status and the reason of its Progressing condition.
    fn step(old: &DeploymentStatus, set: &ReplicaSet, now: i64) -> (DeploymentStatus, String) {
        let deployment = deployment();
        let mut new = numbers(&deployment, old, Some(set), &[set], at(now));
        set_progressing(&deployment, old, &mut new, Some(set), &[set], at(now));
        let reason = find(&new, PROGRESSING).and_then(|it| it.reason.clone()).unwrap_or_default();
        (new, reason)
    }

    #[test]
    fn a_rollout_progresses_completes_and_stays_complete() {
        let (one, reason) = step(&DeploymentStatus::default(), &set_of(1, 0), 0);
        assert_eq!(reason, "ReplicaSetUpdated");
        let (two, reason) = step(&one, &set_of(2, 1), 10);
        assert_eq!(reason, "ReplicaSetUpdated");
        let condition = find(&two, PROGRESSING).unwrap();
        assert_eq!(condition.last_update_time, Some(whole(at(10))));
        assert_eq!(condition.last_transition_time, Some(whole(at(0))));
        assert_eq!(find(&two, AVAILABLE).unwrap().status, "False");
        let (done, reason) = step(&two, &set_of(2, 2), 20);
        assert_eq!(reason, COMPLETE);
        assert_eq!(find(&done, AVAILABLE).unwrap().status, "True");
        let (later, reason) = step(&done, &set_of(2, 1), 9999);
        assert_eq!(reason, COMPLETE, "what is rolled out is not late when a pod is missing later");
        assert_eq!(later.unavailable_replicas, Some(1));
    }

    #[test]
    fn a_stalled_rollout_exceeds_its_deadline() {
        let (begun, _) = step(&DeploymentStatus::default(), &set_of(2, 0), 0);
        assert_eq!(deadline_in(&deployment(), &begun, at(20)), Some(Duration::from_secs(40)));
        assert_eq!(step(&begun, &set_of(2, 0), 59).1, "ReplicaSetUpdated");
        let (late, reason) = step(&begun, &set_of(2, 0), 60);
        assert_eq!(reason, TIMED_OUT);
        let condition = find(&late, PROGRESSING).unwrap();
        assert_eq!(condition.message.as_deref(), Some("ReplicaSet \"web-1\" has timed out progressing."));
        assert_eq!((condition.status.as_str(), deadline_in(&deployment(), &late, at(70))), ("False", None));
        assert_eq!(step(&late, &set_of(2, 2), 80).1, COMPLETE);
    }

    #[test]
    fn pausing_and_resuming_set_the_progressing_condition() {
        let mut paused = deployment();
        paused.spec.as_mut().unwrap().paused = Some(true);
        let mut status = DeploymentStatus::default();
        set_paused(&paused, &mut status, at(0));
        assert_eq!(find(&status, PROGRESSING).unwrap().reason.as_deref(), Some("DeploymentPaused"));
        set_paused(&deployment(), &mut status, at(1));
        assert_eq!(find(&status, PROGRESSING).unwrap().reason.as_deref(), Some("DeploymentResumed"));
    }

    #[test]
    fn replica_failures_are_copied_until_resolved() {
        let mut set = set_of(0, 0);
        let failure = json!([{ "type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "full" }]);
        set.status.as_mut().unwrap().conditions = serde_json::from_value(failure).unwrap();
        let (failed, _) = step(&DeploymentStatus::default(), &set, 0);
        assert_eq!(find(&failed, REPLICA_FAILURE).unwrap().message.as_deref(), Some("full"));
        let (mended, _) = step(&failed, &set_of(2, 0), 1);
        assert!(find(&mended, REPLICA_FAILURE).is_none());
    }
}
