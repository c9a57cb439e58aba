//! Controllers.

pub mod cron_job;
