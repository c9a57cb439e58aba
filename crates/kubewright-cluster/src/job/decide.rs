//! Decides which pods of a Job to create or delete, and whether it is finished.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{Job, JobCondition, JobStatus};
use k8s_openapi::api::core::v1::Pod;

use super::count::{is_over, totals, uncounted};
use super::{active, completed, index_of, is_indexed, set_condition};
use crate::node::whole;
use crate::pod::{self, until};

/// Initial and maximum backoff after failures.
const BACKOFF: Duration = Duration::from_secs(10);
const LONGEST_BACKOFF: Duration = Duration::from_mins(10);

/// The changes to make.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Pods to create, with an index for Indexed Jobs.
    pub(super) create: Vec<Option<i32>>,
    pub(super) delete: Vec<Arc<Pod>>,
    /// How the Job finished, if it did in this sync.
    pub(super) end: Option<End>,
    /// Whether the Job was suspended or resumed in this sync.
    pub(super) suspended: Option<bool>,
    pub(super) wake: Option<Duration>,
}

/// How a Job finishes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    Complete,
    Failed { reason: String, message: String },
}

/// Plans the next changes and updates `status`, which must include all finished pods.
pub(super) fn plan(job: &Job, status: &mut JobStatus, pods: &[Arc<Pod>], now: Timestamp) -> Plan {
    let spec = job.spec.clone().unwrap_or_default();
    let mut plan = Plan::default();
    let active = active(pods);
    let terminating = pods.iter().filter(|pod| pod::is_terminating(pod) && !is_over(pod)).count();
    let number = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
    status.active = Some(number(active.len())).filter(|count| *count > 0);
    status.ready = Some(number(active.iter().filter(|pod| pod::is_ready(pod)).count()));
    status.terminating = Some(number(terminating));
    let suspended = spec.suspend == Some(true);
    let (succeeded, failed) = totals(job, status);

    let target = status
        .conditions
        .iter()
        .flatten()
        .find(|it| it.type_ == "FailureTarget" && it.status == "True")
        .cloned();
    let (mut failure, mut wake) = (target.map(of_condition), None);
    if failure.is_none() && !suspended {
        (failure, wake) = fails(job, status, &active, failed, now);
    }
    if let Some(End::Failed { reason, message }) = failure {
        set_condition(status, "FailureTarget", &reason, &message, now);
        status.active = None;
        plan.delete.clone_from(&active);
        if active.is_empty() && terminating == 0 && uncounted(status).is_empty() {
            set_condition(status, "Failed", &reason, &message, now);
            plan.end = Some(End::Failed { reason, message });
        }
        return plan;
    }
    let done = match spec.completions {
        Some(completions) => succeeded >= completions,
        None => succeeded > 0 && active.is_empty(),
    };
    if done {
        let (reason, message) = ("CompletionsReached", "Reached expected number of succeeded pods");
        set_condition(status, "SuccessCriteriaMet", reason, message, now);
        status.active = None;
        plan.delete.clone_from(&active);
        if active.is_empty() && terminating == 0 && uncounted(status).is_empty() {
            set_condition(status, "Complete", reason, message, now);
            status.completion_time = Some(whole(now));
            plan.end = Some(End::Complete);
        }
        return plan;
    }
    plan.suspended = note_suspension(status, suspended, now);
    if suspended {
        status.start_time = None;
        status.active = None;
        plan.delete = active;
        return plan;
    }
    status.start_time.get_or_insert_with(|| whole(now));
    plan.wake = wake;
    let parallelism = spec.parallelism.unwrap_or(1);
    let wanted = match spec.completions {
        Some(completions) => parallelism.min(completions - succeeded),
        None if succeeded > 0 => number(active.len()).min(parallelism),
        None => parallelism,
    };
    let missing = wanted - number(active.len());
    if missing < 0 {
        plan.delete = surplus(&active, missing.unsigned_abs());
    } else if missing > 0 {
        match waits(pods, failed, now) {
            Some(left) => plan.wake = Some(plan.wake.map_or(left, |wake| wake.min(left))),
            None => plan.create = missing_pods(job, status, &active, missing.unsigned_abs()),
        }
    }
    plan
}

fn of_condition(condition: JobCondition) -> End {
    End::Failed {
        reason: condition.reason.unwrap_or_default(),
        message: condition.message.unwrap_or_default(),
    }
}

/// Why the Job fails, or the time until its deadline.
fn fails(
    job: &Job,
    status: &JobStatus,
    active: &[Arc<Pod>],
    failed: i32,
    now: Timestamp,
) -> (Option<End>, Option<Duration>) {
    let Some(spec) = &job.spec else { return (None, None) };
    let limit = spec.backoff_limit.unwrap_or(6);
    let on_failure =
        spec.template.spec.as_ref().and_then(|it| it.restart_policy.as_deref()) == Some("OnFailure");
    let restarts: i32 = active.iter().map(|pod| pod::restarts(pod)).sum();
    let restarted_too_often = on_failure && restarts > 0 && restarts >= limit;
    if failed > limit || restarted_too_often {
        return (
            Some(End::Failed {
                reason: "BackoffLimitExceeded".to_owned(),
                message: "Job has reached the specified backoff limit".to_owned(),
            }),
            None,
        );
    }
    let deadline = spec.active_deadline_seconds.and_then(|seconds| u64::try_from(seconds).ok());
    let (Some(deadline), Some(since)) = (deadline, &status.start_time) else {
        return (None, deadline.map(Duration::from_secs));
    };
    match until(since.0, Duration::from_secs(deadline), now) {
        Some(left) => (None, Some(left)),
        None => (
            Some(End::Failed {
                reason: "DeadlineExceeded".to_owned(),
                message: "Job was active longer than specified deadline".to_owned(),
            }),
            None,
        ),
    }
}

/// The remaining backoff after the last failure.
fn waits(pods: &[Arc<Pod>], failed: i32, now: Timestamp) -> Option<Duration> {
    let ended = pods.iter().filter(|pod| pod::phase(pod) == "Failed").filter_map(|pod| {
        let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
        statuses
            .iter()
            .filter_map(|it| Some(it.state.as_ref()?.terminated.as_ref()?.finished_at.as_ref()?.0))
            .max()
    });
    let last = ended.max()?;
    let doublings = u32::try_from(failed - 1).unwrap_or_default().min(10);
    until(last, (BACKOFF * 2_u32.pow(doublings)).min(LONGEST_BACKOFF), now)
}

/// The `count` pods to delete: the youngest, which have done the least work.
fn surplus(active: &[Arc<Pod>], count: u32) -> Vec<Arc<Pod>> {
    let mut pods = active.to_vec();
    pods.sort_by_cached_key(|pod| {
        let created = pod::created(pod.metadata.creation_timestamp.as_ref());
        (pod::is_ready(pod), std::cmp::Reverse(created), pod.metadata.name.clone())
    });
    pods.truncate(usize::try_from(count).unwrap_or(usize::MAX));
    pods
}

/// The pods to create. For Indexed Jobs, the lowest indexes that are neither active nor completed.
fn missing_pods(job: &Job, status: &JobStatus, active: &[Arc<Pod>], count: u32) -> Vec<Option<i32>> {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if !is_indexed(job) {
        return vec![None; count];
    }
    let done = completed(status);
    let busy: BTreeSet<i32> = active.iter().filter_map(|pod| index_of(pod)).collect();
    let completions = job.spec.as_ref().and_then(|spec| spec.completions).unwrap_or_default();
    let free = (0..completions).filter(|index| !done.0.contains(index) && !busy.contains(index));
    free.take(count).map(Some).collect()
}

fn note_suspension(status: &mut JobStatus, suspended: bool, now: Timestamp) -> Option<bool> {
    let conditions = status.conditions.clone().unwrap_or_default();
    let old = conditions.iter().find(|condition| condition.type_ == "Suspended");
    let was = old.is_some_and(|condition| condition.status == "True");
    if was == suspended {
        return None;
    }
    let (value, reason, message) = if suspended {
        ("True", "JobSuspended", "Job suspended")
    } else {
        ("False", "JobResumed", "Job resumed")
    };
    let conditions = status.conditions.get_or_insert_default();
    conditions.retain(|condition| condition.type_ != "Suspended");
    conditions.push(JobCondition {
        type_: "Suspended".to_owned(),
        status: value.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_probe_time: Some(whole(now)),
        last_transition_time: Some(whole(now)),
    });
    Some(suspended)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn job(spec: Value) -> Job {
        let mut spec = spec;
        spec["template"] = json!({ "spec": { "containers": [], "restartPolicy": "Never" } });
        serde_json::from_value(json!({ "metadata": { "name": "j" }, "spec": spec })).unwrap()
    }

    fn pod(name: &str, phase: &str, index: Option<i32>) -> Arc<Pod> {
        let annotations = index.map(|index| json!({ super::super::INDEX: index.to_string() }));
        let pod =
            json!({ "metadata": { "name": name, "annotations": annotations }, "status": { "phase": phase } });
        Arc::new(serde_json::from_value(pod).unwrap())
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    #[test]
    fn a_job_creates_pods_within_parallelism_and_completions() {
        let create = |spec: Value, succeeded: i32, pods: &[Arc<Pod>]| {
            let mut status = JobStatus { succeeded: Some(succeeded), ..JobStatus::default() };
            plan(&job(spec), &mut status, pods, at(0)).create.len()
        };
        assert_eq!(create(json!({ "completions": 1 }), 0, &[]), 1);
        assert_eq!(create(json!({ "completions": 5, "parallelism": 3 }), 0, &[pod("a", "Running", None)]), 2);
        assert_eq!(create(json!({ "completions": 5, "parallelism": 3 }), 4, &[]), 1);
        assert_eq!(create(json!({ "parallelism": 3 }), 0, &[]), 3);
        assert_eq!(
            create(json!({ "parallelism": 3 }), 1, &[pod("a", "Running", None)]),
            0,
            "one knew that it is done"
        );
    }

    #[test]
    fn an_indexed_job_starts_with_the_lowest_free_indexes() {
        let mut status = JobStatus {
            succeeded: Some(2),
            completed_indexes: Some("0,3".to_owned()),
            ..JobStatus::default()
        };
        let job = job(json!({ "completions": 6, "parallelism": 3, "completionMode": "Indexed" }));
        let plan = plan(&job, &mut status, &[pod("a", "Running", Some(1))], at(0));
        assert_eq!(plan.create, [Some(2), Some(4)]);
    }

    #[test]
    fn a_job_fails_at_its_backoff_limit_or_deadline() {
        let reason = |spec: Value, failed: i32, now: i64| {
            let start_time = Some(whole(at(0)));
            let mut status = JobStatus { failed: Some(failed), start_time, ..JobStatus::default() };
            match plan(&job(spec), &mut status, &[], at(now)).end {
                Some(End::Failed { reason, .. }) => reason,
                other => format!("{other:?}"),
            }
        };
        assert_eq!(reason(json!({ "completions": 1, "backoffLimit": 2 }), 2, 0), "None");
        assert_eq!(reason(json!({ "completions": 1, "backoffLimit": 2 }), 3, 0), "BackoffLimitExceeded");
        assert_eq!(reason(json!({ "completions": 1, "activeDeadlineSeconds": 30 }), 0, 29), "None");
        assert_eq!(
            reason(json!({ "completions": 1, "activeDeadlineSeconds": 30 }), 0, 30),
            "DeadlineExceeded"
        );
    }

    #[test]
    fn a_failed_job_deletes_its_pods_before_the_condition_is_set() {
        let mut status = JobStatus { failed: Some(9), ..JobStatus::default() };
        let job = job(json!({ "completions": 2, "backoffLimit": 2 }));
        let running = [pod("a", "Running", None)];
        let first = plan(&job, &mut status, &running, at(0));
        assert_eq!((first.delete.len(), first.end), (1, None));
        let then = plan(&job, &mut status, &[], at(1));
        assert!(matches!(then.end, Some(End::Failed { .. })));
    }

    #[test]
    fn a_suspended_job_has_no_pods_and_a_new_start_time_when_resumed() {
        let mut status = JobStatus { start_time: Some(whole(at(0))), ..JobStatus::default() };
        let stopped = plan(
            &job(json!({ "completions": 1, "suspend": true })),
            &mut status,
            &[pod("a", "Running", None)],
            at(5),
        );
        assert_eq!(
            (stopped.delete.len(), stopped.suspended, status.start_time.clone()),
            (1, Some(true), None)
        );
        let resumed = plan(&job(json!({ "completions": 1 })), &mut status, &[], at(9));
        assert_eq!(
            (resumed.create.len(), resumed.suspended, status.start_time),
            (1, Some(false), Some(whole(at(9))))
        );
    }
}
