//! Conversion of Order between its versions. The hub is v1: every other version is converted to it and back.

use kubewright::webhook::{BoxError, Conversion, Spoke};
use kubewright::{Manager, RegisterError};

use crate::api::{v1, v2};

/// Registers the conversion with the manager.
pub fn register(manager: &Manager) -> Result<(), RegisterError> {
    manager.conversion(conversion())?;
    Ok(())
}

/// The versions and the conversions between them.
pub fn conversion() -> Conversion {
    Conversion::hub::<v1::Order>().spoke::<v2::Order>()
}

impl Spoke for v2::Order {
    type Hub = v1::Order;

    fn to_hub(&self) -> Result<Self::Hub, BoxError> {
        // Copies the fields that both versions have. Set fields here that have another name or type in v1.
        Ok(serde_json::from_value(serde_json::to_value(self)?)?)
    }

    fn from_hub(hub: &Self::Hub) -> Result<Self, BoxError> {
        // Fields that v2 lacks need no code: they are kept in an annotation.
        Ok(serde_json::from_value(serde_json::to_value(hub)?)?)
    }
}
