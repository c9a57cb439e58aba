//! Registers all kinds, controllers and webhooks. `kubewright create` and `kubewright delete` edit this file.

use kubewright::{Manager, RegisterError};

use crate::controllers;

/// Registers all controllers and webhooks with the manager.
pub fn register(manager: &Manager) -> Result<(), RegisterError> {
    controllers::deployment::register(manager)?;
    Ok(())
}
