//! Integration tests with an in-process control plane.

mod cron_job;
mod cron_job_conversion;
mod cron_job_v1_webhook;
mod missed_starts;
mod operator;
mod versions;
mod world;
