//! Webhooks for Pod, version v1.
//!
//! They are called for objects with the label `example.com/shop: enabled` only: a webhook for all objects of a built-in kind
//! can stop the whole cluster when it fails.

use kubewright::webhook::{AdmissionRequest, Defaulter, Rejection};
use kubewright::{Manager, RegisterError, webhook};

use k8s_openapi::api::core::v1::Pod;

/// Registers the webhooks with the manager.
pub fn register(manager: &Manager) -> Result<(), RegisterError> {
    manager.defaulter(PodDefaulter)?;
    Ok(())
}

/// Sets default values in new and changed pods.
#[derive(Debug)]
pub struct PodDefaulter;

#[webhook(object_selector = { matchLabels: { "example.com/shop": "enabled" } })]
impl Defaulter for PodDefaulter {
    type Object = Pod;

    async fn default(
        &self,
        _object: &mut Pod,
        _request: &AdmissionRequest,
    ) -> Result<(), Rejection> {
        // Set values that depend on other fields or on the request. Constant defaults belong in the schema.
        Ok(())
    }
}
