//! Brings the world to what a Root wants.

use std::sync::Arc;

use kubewright::RegisterError;
use kubewright::prelude::*;
use kubewright::tracing::info;

use crate::api::lab::v1::Root;

/// Reconciles objects of the kind Root.
#[derive(Debug)]
pub struct RootReconciler;

/// Gives the manager the controller. What it creates and wants to follow is named here: `.owns::<Deployment>()`.
pub fn register(manager: &Manager) -> Result<(), RegisterError> {
    manager.controller(RootReconciler).register()
}

// Rights beside reading roots and writing their status are declared here, such as
// #[rbac(groups = "apps", resources = "deployments", verbs = "create, patch, delete")]
impl Reconciler for RootReconciler {
    type Object = Root;

    async fn reconcile(&self, object: Arc<Root>, _cx: &Context) -> Result<Outcome> {
        if object.metadata.deletion_timestamp.is_some() {
            // What it owns goes with it.
            return Ok(Outcome::done());
        }
        info!(generation = object.metadata.generation, "reconciling");
        // Bring the world to what the spec wants here: `cx.client().apply(&child).await?`.
        Ok(Outcome::done())
    }
}
