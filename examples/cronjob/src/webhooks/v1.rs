//! Webhooks for version v1.

pub mod cron_job;
pub mod cron_job_conversion;
