//! Moves the cluster's actual state toward the desired state of a CronJob: starts Jobs on schedule, and deletes old ones.

mod jobs;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kubewright::client::ignore_not_found;
use kubewright::condition::{ConditionUpdate, set_condition};
use kubewright::jiff::{SignedDuration, Timestamp};
use kubewright::prelude::*;
use kubewright::{Context, Delete, RegisterError, Result};

use self::jobs::Jobs;
use crate::api::v1::{ConcurrencyPolicy, CronJob};
use crate::schedule::{InvalidSchedule, MAX_MISSED, Schedule, Starts};

/// Condition type: whether the schedule is active.
const READY: &str = "Ready";
/// The longest time between two reconciles. Timers measure elapsed time, so a start would be late if the wall clock is set
/// forward or the machine sleeps.
const MAX_WAIT: Duration = Duration::from_mins(10);

/// Reconciles CronJob objects.
#[derive(Debug)]
pub struct CronJobReconciler;

/// Registers the controller with the manager.
pub fn register(manager: &Manager) -> Result<(), RegisterError> {
    manager.controller(CronJobReconciler).owns::<Job>().register()
}

#[rbac(groups = "batch", resources = "jobs", verbs = "create, delete")]
impl Reconciler for CronJobReconciler {
    type Object = CronJob;

    async fn reconcile(&self, cron_job: &CronJob, cx: &Context) -> Result<Outcome> {
        if cron_job.metadata.deletion_timestamp.is_some() {
            // The garbage collector deletes the Jobs.
            return Ok(Outcome::done());
        }
        let mut jobs = Jobs::new(cx.owned()?);
        let mut status = cron_job.status.clone().unwrap_or_default();
        // Jobs can be deleted, and the status can be behind.
        let mut last = status.last_schedule_time.as_ref().map(|time| time.0).max(jobs.last_scheduled());
        let plan = Plan::new(cron_job, last, cx.now());
        if let Plan::Follow(Starts { due: Some(due), .. }) = plan
            && start(cron_job, &mut jobs, due, cx).await?
        {
            last = Some(due);
        }
        let (ready, reason, message) = plan.state();
        if !ready {
            cx.events().warning(cron_job, reason).action("Schedule").note(&message);
        }
        status.active = jobs.active.iter().map(|job| jobs::reference(job)).collect();
        status.last_schedule_time = last.map(Time);
        let ready = ConditionUpdate::new(READY, ready.into(), reason, message);
        set_condition(&mut status.conditions, ready.observed(cron_job.metadata.generation), cx.now());
        cx.set_status(&status).await?;
        // After the status has their scheduled times: otherwise they would be due again.
        clean_up(cron_job, jobs, cx).await?;
        Ok(plan.outcome(cx.now()))
    }
}

/// What to do about the schedule.
enum Plan {
    Suspended,
    Invalid(InvalidSchedule),
    TooManyMissed,
    Follow(Starts),
}

impl Plan {
    fn new(cron_job: &CronJob, last: Option<Timestamp>, now: Timestamp) -> Self {
        let spec = &cron_job.spec;
        if spec.suspend == Some(true) {
            return Self::Suspended;
        }
        let schedule = match Schedule::parse(&spec.schedule) {
            Ok(schedule) => schedule,
            Err(error) => return Self::Invalid(error),
        };
        let created = cron_job.metadata.creation_timestamp.as_ref().map(|time| time.0);
        let mut earliest = last.or(created).unwrap_or(now);
        if let Some(seconds) = spec.starting_deadline_seconds {
            let deadline = now.saturating_sub(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MIN);
            earliest = earliest.max(deadline);
        }
        schedule.starts(earliest, now).map_or(Self::TooManyMissed, Self::Follow)
    }

    /// Whether the schedule is followed or suspended, with a reason and a message.
    fn state(&self) -> (bool, &'static str, String) {
        match self {
            Self::Suspended => (true, "Suspended", "No Job starts until spec.suspend is false".to_owned()),
            Self::Invalid(error) => (false, "UnparseableSchedule", format!("spec.schedule: {error}")),
            Self::TooManyMissed => (
                false,
                "TooManyMissedTimes",
                format!(
                    "Too many missed start times (> {MAX_MISSED}). Set or decrease spec.startingDeadlineSeconds, \
                     or check clock skew"
                ),
            ),
            Self::Follow(Starts { next: Some(next), .. }) => {
                (true, "Scheduled", format!("The next start is at {next}"))
            }
            Self::Follow(Starts { next: None, .. }) => {
                (true, "Scheduled", "The schedule has no further start".to_owned())
            }
        }
    }

    fn outcome(&self, now: Timestamp) -> Outcome {
        match self {
            Self::Follow(Starts { next: Some(next), .. }) => {
                let wait = Duration::try_from(next.duration_since(now)).unwrap_or_default();
                Outcome::requeue_after(wait.min(MAX_WAIT))
            }
            // A change of the spec is the next event.
            _ => Outcome::done(),
        }
    }
}

/// Starts the Job of a scheduled time. Returns whether the concurrency policy allowed it.
async fn start(cron_job: &CronJob, jobs: &mut Jobs, scheduled: Timestamp, cx: &Context) -> Result<bool> {
    match cron_job.spec.concurrency_policy.unwrap_or_default() {
        ConcurrencyPolicy::Allow => {}
        ConcurrencyPolicy::Forbid if jobs.active.is_empty() => {}
        ConcurrencyPolicy::Forbid => {
            let note = "Not starting a Job, because a Job is running and the concurrency policy is Forbid";
            cx.events().normal(cron_job, "JobAlreadyActive").action("Skip").note(note);
            return Ok(false);
        }
        ConcurrencyPolicy::Replace => {
            for job in jobs.active.drain(..) {
                delete(cron_job, &job, cx).await?;
            }
        }
    }
    let job = jobs::new(cron_job, scheduled)?;
    match cx.client().create(&job).await {
        Ok(job) => {
            let note = format!("Created Job {}", job.name_any());
            cx.events().normal(cron_job, "SuccessfulCreate").action("Create").note(note);
            jobs.active.push(Arc::new(job));
            Ok(true)
        }
        Err(error) => {
            let note = format!("Failed to create Job {}: {error}", job.name_any());
            cx.events().warning(cron_job, "FailedCreate").action("Create").note(note);
            Err(error.into())
        }
    }
}

/// Deletes finished Jobs above the history limits, oldest first.
async fn clean_up(cron_job: &CronJob, jobs: Jobs, cx: &Context) -> Result<()> {
    let spec = &cron_job.spec;
    let limits = [
        (jobs.successful, spec.successful_jobs_history_limit.unwrap_or(3)),
        (jobs.failed, spec.failed_jobs_history_limit.unwrap_or(1)),
    ];
    for (finished, limit) in limits {
        let surplus = finished.len().saturating_sub(usize::try_from(limit).unwrap_or_default());
        for job in &finished[..surplus] {
            delete(cron_job, job, cx).await?;
        }
    }
    Ok(())
}

/// Deletes a Job and its Pods.
async fn delete(cron_job: &CronJob, job: &Job, cx: &Context) -> Result<()> {
    if job.metadata.deletion_timestamp.is_some() {
        return Ok(());
    }
    let deleted = ignore_not_found(cx.client().delete_with(job, &Delete::background()).await)?;
    if deleted.is_some() {
        let note = format!("Deleted Job {}", job.name_any());
        cx.events().normal(cron_job, "SuccessfulDelete").action("Delete").note(note);
    }
    Ok(())
}
