//! The CronJob controller.
//!
//! The name of a Job contains its scheduled minute, so that each time has at most one Job.

mod schedule;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use k8s_openapi::api::batch::v1::{CronJob, CronJobSpec, CronJobStatus, Job};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kubewright_runtime::client::ignore_not_found;
use kubewright_runtime::owner::set_controller_reference;
use kubewright_runtime::{Context, Delete, Manager, Outcome, Reconciler, RegisterError, Result};

use self::schedule::Schedule;
use crate::node::whole;
use crate::pod::{created, until};
use crate::{adoption, job};

const SCHEDULED: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

/// Registers the CronJob controller.
pub fn register(manager: &Manager) -> Result<(), RegisterError> {
    adoption::index::<Job>(manager)?;
    manager.controller(CronJobs).owns::<Job>().register()
}

struct CronJobs;

impl Reconciler for CronJobs {
    type Object = CronJob;

    async fn reconcile(&self, cron: &CronJob, cx: &Context) -> Result<Outcome> {
        let (namespace, uid) = (cx.key().namespace().unwrap_or_default(), cron.metadata.uid.as_deref());
        let jobs = adoption::controlled::<Job>(cx.client(), namespace, uid.unwrap_or_default()).await?;
        let mut status = cron.status.clone().unwrap_or_default();
        update_active(cron, &jobs, &mut status, cx);
        clean_up(cron, &jobs, cx).await?;
        let outcome = create_due_job(cron, &jobs, &mut status, cx).await;
        status.active = status.active.filter(|active| !active.is_empty());
        let mut wanted = cron.clone();
        wanted.status = Some(status);
        ignore_not_found(cx.client().status().patch_between(cron, &wanted).await)?;
        outcome
    }
}

/// Removes finished Jobs from the active list and records events.
fn update_active(cron: &CronJob, jobs: &[Arc<Job>], status: &mut CronJobStatus, cx: &Context) {
    let mut active = status.active.take().unwrap_or_default();
    active.retain(|reference| {
        let Some(job) = jobs.iter().find(|job| job.metadata.uid == reference.uid) else {
            let name = reference.name.as_deref().unwrap_or_default();
            let note = format_args!("Active job went missing: {name}");
            cx.events().normal(cron, "MissingJob").action("Missing").note(note);
            return false;
        };
        let Some(end) = job::finished(job) else { return true };
        let name = job.metadata.name.as_deref().unwrap_or_default();
        let note = format_args!("Saw completed job: {name}, condition: {}", end.type_);
        cx.events().about(cron).related(&**job).normal("SawCompletedJob").action("Completed").note(note);
        false
    });
    let succeeded = jobs.iter().filter_map(|job| job.status.as_ref()?.completion_time.clone());
    let last = succeeded.max_by_key(|time| time.0);
    if last.as_ref().map(|it| it.0) > status.last_successful_time.as_ref().map(|it| it.0) {
        status.last_successful_time = last;
    }
    status.active = Some(active);
}

/// Deletes Jobs beyond the history limits.
async fn clean_up(cron: &CronJob, jobs: &[Arc<Job>], cx: &Context) -> Result<()> {
    let spec = spec_of(cron.spec.clone());
    for (type_, limit) in
        [("Complete", spec.successful_jobs_history_limit), ("Failed", spec.failed_jobs_history_limit)]
    {
        let Some(limit) = limit.and_then(|limit| usize::try_from(limit).ok()) else { continue };
        let is_of = |job: &&Arc<Job>| job::condition(job, type_).is_some();
        let mut finished: Vec<&Arc<Job>> = jobs.iter().filter(is_of).collect();
        finished.sort_by_key(|job| {
            let started = job.status.as_ref().and_then(|status| status.start_time.as_ref());
            (created(started), job.metadata.name.clone())
        });
        for job in finished.iter().take(finished.len().saturating_sub(limit)) {
            delete(cron, job, cx).await?;
        }
    }
    Ok(())
}

async fn delete(cron: &CronJob, job: &Job, cx: &Context) -> Result<()> {
    if job.metadata.deletion_timestamp.is_some() {
        return Ok(());
    }
    let how = Delete::background().uid(job.metadata.uid.clone().unwrap_or_default());
    if ignore_not_found(cx.client().delete_with(job, &how).await)?.is_some() {
        let name = job.metadata.name.as_deref().unwrap_or_default();
        let events = cx.events().about(cron).related(job);
        events.normal("SuccessfulDelete").action("Delete").note(format_args!("Deleted job {name}"));
    }
    Ok(())
}

/// Creates a Job if one is due.
async fn create_due_job(
    cron: &CronJob,
    jobs: &[Arc<Job>],
    status: &mut CronJobStatus,
    cx: &Context,
) -> Result<Outcome> {
    let spec = spec_of(cron.spec.clone());
    if cron.metadata.deletion_timestamp.is_some() || spec.suspend == Some(true) {
        return Ok(Outcome::done());
    }
    let zone = match spec.time_zone.as_deref() {
        None => TimeZone::UTC,
        Some(name) => match TimeZone::get(name) {
            Ok(zone) => zone,
            Err(error) => {
                let note = format_args!("invalid timeZone: {name:?}: {error}");
                cx.events().warning(cron, "UnknownTimeZone").action("Scheduling").note(note);
                return Ok(Outcome::done());
            }
        },
    };
    let schedule = match Schedule::parse(&spec.schedule, zone.clone()) {
        Ok(schedule) => schedule,
        Err(error) => {
            let note = format_args!("unparseable schedule: {:?}: {error}", spec.schedule);
            cx.events().warning(cron, "UnparseableSchedule").action("Scheduling").note(note);
            return Ok(Outcome::done());
        }
    };
    let now = cx.now();
    let next = schedule.after(now).and_then(|next| until(next, Duration::ZERO, now));
    let next = next.map_or(Outcome::done(), Outcome::requeue_after);
    let last = status.last_schedule_time.as_ref().or(cron.metadata.creation_timestamp.as_ref());
    let Some(time) = schedule.latest(created(last), now) else { return Ok(next) };
    let deadline = spec.starting_deadline_seconds.and_then(|seconds| u64::try_from(seconds).ok());
    if deadline
        .is_some_and(|deadline| until(time, Duration::from_secs(deadline), now).is_none() && time != now)
    {
        let note = format_args!("Missed scheduled time to start a job: {time}");
        cx.events().warning(cron, "MissSchedule").action("Scheduling").note(note);
        return Ok(next);
    }
    let name = format!("{}-{}", cx.key().name(), time.as_second().div_euclid(60));
    let active = status.active.get_or_insert_default();
    if jobs.iter().any(|job| job.metadata.name.as_deref() == Some(&name)) {
        status.last_schedule_time = Some(whole(time));
        return Ok(next);
    }
    match spec.concurrency_policy.as_deref() {
        Some("Forbid") if !active.is_empty() => {
            let note = "Not starting job because prior execution is running and concurrency policy is Forbid";
            cx.events().normal(cron, "JobAlreadyActive").action("Scheduling").note(note);
            return Ok(next);
        }
        Some("Replace") => {
            for job in jobs.iter().filter(|job| active.iter().any(|it| it.uid == job.metadata.uid)) {
                delete(cron, job, cx).await?;
            }
            active.clear();
        }
        _ => {}
    }
    let created = match cx.client().create(&job_of(cron, &name, time, &zone)).await {
        Ok(created) => created,
        Err(error) if error.is_already_exists() || error.is_namespace_terminating() => return Ok(next),
        Err(error) => {
            cx.events()
                .warning(cron, "FailedCreate")
                .action("Create")
                .note(format_args!("Error creating job: {error}"));
            return Err(error.into());
        }
    };
    let events = cx.events().about(cron).related(&created);
    events.normal("SuccessfulCreate").action("Create").note(format_args!("Created job {name}"));
    active.push(ObjectReference {
        api_version: Some("batch/v1".to_owned()),
        kind: Some("Job".to_owned()),
        name: Some(name),
        namespace: created.metadata.namespace,
        uid: created.metadata.uid,
        resource_version: created.metadata.resource_version,
        field_path: None,
    });
    status.last_schedule_time = Some(Time(time));
    Ok(next)
}

/// The spec of a CronJob. Not optional since Kubernetes 1.36.
fn spec_of(spec: impl Into<Option<CronJobSpec>>) -> CronJobSpec {
    spec.into().unwrap_or_default()
}

/// The Job for a scheduled time.
fn job_of(cron: &CronJob, name: &str, time: Timestamp, zone: &TimeZone) -> Job {
    let template = spec_of(cron.spec.clone()).job_template;
    let meta = template.metadata.unwrap_or_default();
    let mut annotations = meta.annotations.unwrap_or_default();
    let shown =
        time.to_zoned(zone.clone()).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string().replace("+00:00", "Z");
    annotations.insert(SCHEDULED.to_owned(), shown);
    let mut job = Job {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: cron.metadata.namespace.clone(),
            labels: meta.labels,
            annotations: Some(annotations),
            ..ObjectMeta::default()
        },
        spec: template.spec,
        status: None,
    };
    // Cannot fail: the Job is new and in the same namespace.
    let _ = set_controller_reference(cron, &mut job);
    job
}
