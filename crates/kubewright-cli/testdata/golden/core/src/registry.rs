//! Registers all kinds and controllers. `kubewright create` and `kubewright delete` edit this file.

use kubewright::{Manager, RegisterError};

use crate::controllers;

/// Registers all controllers with the manager.
pub fn register(manager: &Manager) -> Result<(), RegisterError> {
    controllers::deployment::register(manager)?;
    Ok(())
}
