//! Controller for Deployment, which this project does not define.

use kubewright::prelude::*;
use kubewright::tracing::info;
use kubewright::{Context, RegisterError, Result};

use k8s_openapi::api::apps::v1::Deployment;

/// Reconciles Deployment objects.
#[derive(Debug)]
pub struct DeploymentReconciler;

/// Registers the controller with the manager. Declare owned kinds here: `.owns::<ConfigMap>()`.
pub fn register(manager: &Manager) -> Result<(), RegisterError> {
    manager.controller(DeploymentReconciler).register()
}

// RBAC rules for reading deployments are derived. Declare others here, for example:
// #[rbac(groups = "apps", resources = "deployments", verbs = "patch")]
impl Reconciler for DeploymentReconciler {
    type Object = Deployment;

    async fn reconcile(&self, object: &Deployment, _cx: &Context) -> Result<Outcome> {
        if object.metadata.deletion_timestamp.is_some() {
            return Ok(Outcome::done());
        }
        // Create and update owned objects here: `cx.apply_owned(child).await?`.
        info!(generation = object.metadata.generation, "Reconciling");
        Ok(Outcome::done())
    }
}
