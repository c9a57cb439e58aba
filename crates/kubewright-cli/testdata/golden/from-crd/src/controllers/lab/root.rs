//! Moves the cluster's actual state toward the desired state of a Root.

use kubewright::RegisterError;
use kubewright::prelude::*;
use kubewright::tracing::info;

use crate::api::lab::v1::Root;

/// Reconciles Root objects.
#[derive(Debug)]
pub struct RootReconciler;

/// Registers the controller with the manager. Add the kinds that it creates: `.owns::<Deployment>()`.
pub fn register(manager: &Manager) -> Result<(), RegisterError> {
    manager.controller(RootReconciler).register()
}

// The operator can read roots and write their status. Declare other permissions here, such as
// #[rbac(groups = "apps", resources = "deployments", verbs = "create, patch, delete")]
impl Reconciler for RootReconciler {
    type Object = Root;

    async fn reconcile(&self, object: &Root, _cx: &Context) -> Result<Outcome> {
        if object.metadata.deletion_timestamp.is_some() {
            // Owned objects are deleted by the garbage collector.
            return Ok(Outcome::done());
        }
        info!(generation = object.metadata.generation, "reconciling");
        // Create and update owned objects here: `cx.apply_owned(child).await?`.
        Ok(Outcome::done())
    }
}
