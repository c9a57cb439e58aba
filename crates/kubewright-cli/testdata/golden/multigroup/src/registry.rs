//! Registers all kinds, controllers and webhooks. `kubewright create` and `kubewright delete` edit this file.

use kubewright::{Manager, RegisterError};

use crate::{api, controllers};

kubewright::crds!(api::sales::v1::Order);
kubewright::crds!(api::stock::v1beta1::Warehouse);

/// Registers all controllers and webhooks with the manager.
pub fn register(manager: &Manager) -> Result<(), RegisterError> {
    controllers::sales::order::register(manager)?;
    controllers::stock::warehouse::register(manager)?;
    Ok(())
}
