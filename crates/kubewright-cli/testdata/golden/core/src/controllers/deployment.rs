//! Follows objects of the kind Deployment, which somebody else defines.

use std::sync::Arc;

use kubewright::RegisterError;
use kubewright::prelude::*;
use kubewright::tracing::info;

use k8s_openapi::api::apps::v1::Deployment;

/// Reconciles objects of the kind Deployment.
#[derive(Debug)]
pub struct DeploymentReconciler;

/// Gives the manager the controller. What it creates and wants to follow is named here: `.owns::<ConfigMap>()`.
pub fn register(manager: &Manager) -> Result<(), RegisterError> {
    manager.controller(DeploymentReconciler).register()
}

// Rights beside reading deployments and writing their status are declared here, such as
// #[rbac(groups = "apps", resources = "deployments", verbs = "patch")]
impl Reconciler for DeploymentReconciler {
    type Object = Deployment;

    async fn reconcile(&self, object: Arc<Deployment>, _cx: &Context) -> Result<Outcome> {
        if object.metadata.deletion_timestamp.is_some() {
            return Ok(Outcome::done());
        }
        // Bring the world to what the object wants here.
        info!(generation = object.metadata.generation, "reconciling");
        Ok(Outcome::done())
    }
}
