//! Webhooks for Pod, version v1.
//!
//! Only objects with the label `example.com/shop: enabled` are matched: a failing webhook for all objects of a built-in kind
//! can break the whole cluster.

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
        // Set defaults that depend on other fields or the request. Put constant defaults in the schema.
        Ok(())
    }
}
