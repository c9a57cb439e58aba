//! Every kind and every controller of this operator. `kubewright create` and `kubewright delete` write this file.

use kubewright::{Manager, RegisterError};

/// Gives the manager all controllers.
pub fn register(_manager: &Manager) -> Result<(), RegisterError> {
    Ok(())
}
