//! Every kind and every controller of this operator. `kubewright create` and `kubewright delete` write this file.

use kubewright::{Manager, RegisterError};

use crate::{api, controllers};

kubewright::crds!(api::sales::v1::Order);
kubewright::crds!(api::stock::v1beta1::Warehouse);

/// Gives the manager all controllers.
pub fn register(manager: &Manager) -> Result<(), RegisterError> {
    controllers::sales::order::register(manager)?;
    controllers::stock::warehouse::register(manager)?;
    Ok(())
}
