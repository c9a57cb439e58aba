//! Registers all kinds, controllers and webhooks. `kubewright create` and `kubewright delete` edit this file.

use kubewright::{Manager, RegisterError};

use crate::{api, controllers, webhooks};

kubewright::crds!(api::v1::CronJob);
kubewright::crds!(api::v2::CronJob);

/// Registers all controllers and webhooks with the manager.
pub fn register(manager: &Manager) -> Result<(), RegisterError> {
    controllers::cron_job::register(manager)?;
    webhooks::v1::cron_job::register(manager)?;
    webhooks::v1::cron_job_conversion::register(manager)?;
    Ok(())
}
