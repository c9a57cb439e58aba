//! Moves the cluster's actual state toward the desired state of a Root.

use kubewright::prelude::*;
use kubewright::tracing::info;
use kubewright::{Context, RegisterError, Result};

use crate::api::lab::v1::Root;

/// Reconciles Root objects.
#[derive(Debug)]
pub struct RootReconciler;

/// Registers the controller with the manager. Declare owned kinds here: `.owns::<Deployment>()`.
pub fn register(manager: &Manager) -> Result<(), RegisterError> {
    manager.controller(RootReconciler).register()
}

// RBAC rules for roots and their status are derived. Declare others here, for example:
// #[rbac(groups = "apps", resources = "deployments", verbs = "create, patch, delete")]
impl Reconciler for RootReconciler {
    type Object = Root;

    async fn reconcile(&self, object: &Root, _cx: &Context) -> Result<Outcome> {
        if object.metadata.deletion_timestamp.is_some() {
            // The garbage collector deletes owned objects.
            return Ok(Outcome::done());
        }
        info!(generation = object.metadata.generation, "Reconciling");
        // Create and update owned objects here: `cx.apply_owned(child).await?`.
        Ok(Outcome::done())
    }
}
