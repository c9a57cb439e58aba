//! Version v2 of batch.tutorial.kubebuilder.io.

mod cron_job;

pub use cron_job::*;
