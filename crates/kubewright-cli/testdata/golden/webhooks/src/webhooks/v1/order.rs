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
        // Set values that depend on other fields or on the request. Constant defaults belong in the schema.
        Ok(())
    }
}

/// Accepts or refuses new and changed orders.
#[derive(Debug)]
pub struct OrderValidator;

// `verbs = "create, update, delete"` calls `validate_delete` too. Updates are validated as new objects are, unless
// `validate_update` is implemented.
#[webhook]
impl Validator for OrderValidator {
    type Object = Order;

    async fn validate_create(
        &self,
        _new: &Order,
        _v: &mut Validation<'_>,
    ) -> Result<(), Rejection> {
        // Report every wrong field, such as `v.invalid("spec.replicas", replicas, "must be between 1 and 5")`.
        Ok(())
    }
}
