//! Registers all kinds and controllers. `kubewright create` and `kubewright delete` edit this file.

use kubewright::{Manager, RegisterError};

/// Registers all controllers with the manager.
pub fn register(_manager: &Manager) -> Result<(), RegisterError> {
    Ok(())
}
