//! Conversion of CronJob between its versions. The hub version is v1.

use kubewright::webhook::{BoxError, Conversion, Spoke};
use kubewright::{Manager, RegisterError};

use crate::api::{v1, v2};

/// Registers the conversion with the manager.
pub fn register(manager: &Manager) -> Result<(), RegisterError> {
    manager.conversion(conversion())?;
    Ok(())
}

/// Converts between all versions.
pub fn conversion() -> Conversion {
    Conversion::hub::<v1::CronJob>().spoke::<v2::CronJob>()
}

impl Spoke for v2::CronJob {
    type Hub = v1::CronJob;

    fn to_hub(&self) -> Result<Self::Hub, BoxError> {
        let spec = self.spec.clone();
        let spec = v1::CronJobSpec {
            schedule: join(&spec.schedule),
            starting_deadline_seconds: spec.starting_deadline_seconds,
            concurrency_policy: spec.concurrency_policy.map(|policy| match policy {
                v2::ConcurrencyPolicy::Allow => v1::ConcurrencyPolicy::Allow,
                v2::ConcurrencyPolicy::Forbid => v1::ConcurrencyPolicy::Forbid,
                v2::ConcurrencyPolicy::Replace => v1::ConcurrencyPolicy::Replace,
            }),
            suspend: spec.suspend,
            job_template: spec.job_template,
            successful_jobs_history_limit: spec.successful_jobs_history_limit,
            failed_jobs_history_limit: spec.failed_jobs_history_limit,
        };
        let status = self.status.clone().map(|status| v1::CronJobStatus {
            active: status.active,
            last_schedule_time: status.last_schedule_time,
            conditions: status.conditions,
        });
        Ok(v1::CronJob { metadata: self.metadata.clone(), spec, status })
    }

    fn from_hub(hub: &Self::Hub) -> Result<Self, BoxError> {
        let spec = hub.spec.clone();
        let spec = v2::CronJobSpec {
            schedule: split(&spec.schedule),
            starting_deadline_seconds: spec.starting_deadline_seconds,
            concurrency_policy: spec.concurrency_policy.map(|policy| match policy {
                v1::ConcurrencyPolicy::Allow => v2::ConcurrencyPolicy::Allow,
                v1::ConcurrencyPolicy::Forbid => v2::ConcurrencyPolicy::Forbid,
                v1::ConcurrencyPolicy::Replace => v2::ConcurrencyPolicy::Replace,
            }),
            suspend: spec.suspend,
            job_template: spec.job_template,
            successful_jobs_history_limit: spec.successful_jobs_history_limit,
            failed_jobs_history_limit: spec.failed_jobs_history_limit,
        };
        let status = hub.status.clone().map(|status| v2::CronJobStatus {
            active: status.active,
            last_schedule_time: status.last_schedule_time,
            conditions: status.conditions,
        });
        Ok(Self { metadata: hub.metadata.clone(), spec, status })
    }
}

fn join(schedule: &v2::CronSchedule) -> String {
    let v2::CronSchedule { minute, hour, day_of_month, month, day_of_week } = schedule;
    [minute, hour, day_of_month, month, day_of_week].map(String::as_str).join(" ")
}

/// The fields of a schedule.
///
/// A conversion must not fail for a stored object, since lists would fail with it. A schedule without five fields, which the
/// validating webhook rejects, therefore has empty fields in v2. v1 keeps its text: the runtime stores what v2 cannot
/// represent in an annotation.
fn split(schedule: &str) -> v2::CronSchedule {
    let mut fields = schedule.split_whitespace().map(str::to_owned);
    let mut next = || fields.next().unwrap_or_default();
    v2::CronSchedule {
        minute: next(),
        hour: next(),
        day_of_month: next(),
        month: next(),
        day_of_week: next(),
    }
}
