//! The Jobs of a CronJob: which of them run, and the template of a new one.

use std::sync::Arc;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubewright::Result;
use kubewright::jiff::Timestamp;
use kubewright::owner::set_controller_reference;
use kubewright::prelude::*;

use crate::api::v1::CronJob;

/// The annotation of a Job with its scheduled time.
const SCHEDULED_AT: &str = "batch.tutorial.kubebuilder.io/scheduled-at";

/// The Jobs of a CronJob by state, oldest first.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    pub(super) active: Vec<Arc<Job>>,
    pub(super) successful: Vec<Arc<Job>>,
    pub(super) failed: Vec<Arc<Job>>,
    last_scheduled: Option<Timestamp>,
}

impl Jobs {
    pub(super) fn new(mut all: Vec<Arc<Job>>) -> Self {
        all.sort_by_cached_key(|job| (scheduled_at(job), job.name_any()));
        let mut jobs =
            Self { last_scheduled: all.last().and_then(|job| scheduled_at(job)), ..Self::default() };
        for job in all {
            match finished(&job) {
                None => jobs.active.push(job),
                Some("Complete") => jobs.successful.push(job),
                Some(_) => jobs.failed.push(job),
            }
        }
        jobs
    }

    /// The scheduled time of the latest Job.
    pub(super) fn last_scheduled(&self) -> Option<Timestamp> {
        self.last_scheduled
    }
}

/// The condition with which a Job finished.
fn finished(job: &Job) -> Option<&str> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    let mut types = conditions.iter().filter(|it| it.status == "True").map(|it| it.type_.as_str());
    types.find(|type_| matches!(*type_, "Complete" | "Failed"))
}

fn scheduled_at(job: &Job) -> Option<Timestamp> {
    job.annotations().get(SCHEDULED_AT)?.parse().ok()
}

/// The Job of a scheduled time. The time is in its name, so that no time has two Jobs.
pub(super) fn new(cron_job: &CronJob, scheduled: Timestamp) -> Result<Job> {
    let template = &cron_job.spec.job_template;
    let template_metadata = template.metadata.clone().unwrap_or_default();
    let mut annotations = template_metadata.annotations.unwrap_or_default();
    annotations.insert(SCHEDULED_AT.to_owned(), scheduled.to_string());
    let metadata = ObjectMeta {
        name: Some(format!("{}-{}", cron_job.name_any(), scheduled.as_second())),
        namespace: cron_job.namespace(),
        labels: template_metadata.labels,
        annotations: Some(annotations),
        ..ObjectMeta::default()
    };
    let mut job = Job { metadata, spec: template.spec.clone(), status: None };
    set_controller_reference(cron_job, &mut job)?;
    Ok(job)
}

/// A reference for the status. It has no resource version, so that it does not change with the Job.
pub(super) fn reference(job: &Job) -> ObjectReference {
    ObjectReference {
        api_version: Some("batch/v1".to_owned()),
        kind: Some("Job".to_owned()),
        name: job.metadata.name.clone(),
        namespace: job.metadata.namespace.clone(),
        uid: job.metadata.uid.clone(),
        ..ObjectReference::default()
    }
}
