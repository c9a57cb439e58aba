//! Every kind and every controller of this operator. `kubewright create` and `kubewright delete` write this file.

use kubewright::{Manager, RegisterError};

use crate::controllers;

/// Gives the manager all controllers.
pub fn register(manager: &Manager) -> Result<(), RegisterError> {
    controllers::deployment::register(manager)?;
    Ok(())
}
