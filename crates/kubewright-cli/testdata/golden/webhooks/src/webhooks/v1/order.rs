//! Webhooks for Order, version v1 of sales.example.com.

use kubewright::webhook::{AdmissionRequest, Defaulter, Rejection, Validation, Validator};
use kubewright::{Manager, RegisterError, webhook};

use crate::api::v1::Order;

/// Registers the webhooks with the manager.
pub fn register(manager: &Manager) -> Result<(), RegisterError> {
    manager.defaulter(OrderDefaulter)?;
    manager.validator(OrderValidator)?;
    Ok(())
}

/// Sets default values in new and changed orders.
#[derive(Debug)]
pub struct OrderDefaulter;

#[webhook]
impl Defaulter for OrderDefaulter {
    type Object = Order;

    async fn default(
        &self,
        _object: &mut Order,
        _request: &AdmissionRequest,
    ) -> Result<(), Rejection> {
        // Set defaults that depend on other fields or the request. Put constant defaults in the schema.
        Ok(())
    }
}

/// Validates new and changed orders.
#[derive(Debug)]
pub struct OrderValidator;

// Add `delete` to the verbs to call `validate_delete`. Updates call `validate_create` unless `validate_update` is
// implemented.
#[webhook]
impl Validator for OrderValidator {
    type Object = Order;

    async fn validate_create(
        &self,
        _new: &Order,
        _v: &mut Validation<'_>,
    ) -> Result<(), Rejection> {
        // Report all invalid fields, for example `v.invalid("spec.replicas", replicas, "must be between 1 and 5")`.
        Ok(())
    }
}
