//! Controller for Deployment, which this project does not define.

use std::sync::Arc;

use kubewright::RegisterError;
use kubewright::prelude::*;
use kubewright::tracing::info;

use k8s_openapi::api::apps::v1::Deployment;

/// Reconciles objects of the kind Deployment.
#[derive(Debug)]
pub struct DeploymentReconciler;

/// Registers the controller. Kinds that it creates and watches are declared here: `.owns::<ConfigMap>()`.
pub fn register(manager: &Manager) -> Result<(), RegisterError> {
    manager.controller(DeploymentReconciler).register()
}

// Declare RBAC rules beside reading deployments here, such as
// #[rbac(groups = "apps", resources = "deployments", verbs = "patch")]
impl Reconciler for DeploymentReconciler {
    type Object = Deployment;

    async fn reconcile(&self, object: Arc<Deployment>, _cx: &Context) -> Result<Outcome> {
        if object.metadata.deletion_timestamp.is_some() {
            return Ok(Outcome::done());
        }
        // Move the cluster toward the desired state here.
        info!(generation = object.metadata.generation, "reconciling");
        Ok(Outcome::done())
    }
}
