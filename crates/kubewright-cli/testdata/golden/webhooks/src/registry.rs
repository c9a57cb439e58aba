//! Registers all kinds, controllers and webhooks. `kubewright create` and `kubewright delete` edit this file.

use kubewright::{Manager, RegisterError};

use crate::{api, controllers, webhooks};

kubewright::crds!(api::v1::Order);

/// Registers all controllers and webhooks with the manager.
pub fn register(manager: &Manager) -> Result<(), RegisterError> {
    controllers::order::register(manager)?;
    webhooks::v1::order::register(manager)?;
    Ok(())
}
