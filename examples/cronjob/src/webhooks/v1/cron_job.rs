//! Webhooks for CronJob, version v1 of batch.tutorial.kubebuilder.io.
//!
//! The API server converts objects of v2 to v1 before it calls them.

use kubewright::RegisterError;
use kubewright::prelude::*;
use kubewright::webhook::{AdmissionRequest, Defaulter, Rejection, Validation, Validator};

use crate::api::v1::{ConcurrencyPolicy, CronJob};
use crate::schedule::Schedule;

/// A Job's name has at most 63 characters, of which the controller adds 11: `-` and the scheduled time.
const MAX_NAME: usize = 63 - 11;

/// Registers the webhooks with the manager.
pub fn register(manager: &Manager) -> Result<(), RegisterError> {
    manager.defaulter(CronJobDefaulter)?;
    manager.validator(CronJobValidator)?;
    Ok(())
}

/// Sets default values in new and changed cronjobs.
#[derive(Debug)]
pub struct CronJobDefaulter;

#[webhook]
impl Defaulter for CronJobDefaulter {
    type Object = CronJob;

    async fn default(&self, cron_job: &mut CronJob, _: &AdmissionRequest) -> Result<(), Rejection> {
        let spec = &mut cron_job.spec;
        spec.concurrency_policy.get_or_insert(ConcurrencyPolicy::Allow);
        spec.suspend.get_or_insert(false);
        spec.successful_jobs_history_limit.get_or_insert(3);
        spec.failed_jobs_history_limit.get_or_insert(1);
        Ok(())
    }
}

/// Validates new and changed cronjobs.
#[derive(Debug)]
pub struct CronJobValidator;

#[webhook]
impl Validator for CronJobValidator {
    type Object = CronJob;

    async fn validate_create(&self, cron_job: &CronJob, v: &mut Validation<'_>) -> Result<(), Rejection> {
        let name = cron_job.name_any();
        if name.len() > MAX_NAME {
            v.invalid("metadata.name", name, format!("must be no more than {MAX_NAME} characters"));
        }
        if let Err(error) = Schedule::parse(&cron_job.spec.schedule) {
            v.invalid("spec.schedule", cron_job.spec.schedule.as_str(), error.to_string());
        }
        Ok(())
    }
}
