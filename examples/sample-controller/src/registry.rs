//! Registers all kinds, controllers and webhooks. `kubewright create` and `kubewright delete` edit this file.

use kubewright::{Manager, RegisterError};

use crate::{api, controllers};

kubewright::crds!(api::v1alpha1::Bar);

/// Registers all controllers and webhooks with the manager.
pub fn register(manager: &Manager) -> Result<(), RegisterError> {
    controllers::bar::register(manager)?;
    Ok(())
}
