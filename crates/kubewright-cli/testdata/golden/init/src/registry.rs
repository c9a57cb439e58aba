//! Registers all kinds, controllers and webhooks. `kubewright create` and `kubewright delete` edit this file.

use kubewright::{Manager, RegisterError};

/// Registers all controllers and webhooks with the manager.
pub fn register(_manager: &Manager) -> Result<(), RegisterError> {
    Ok(())
}
