//! Moves the cluster's actual state toward the desired state of an Oddity.

use kubewright::RegisterError;
use kubewright::prelude::*;
use kubewright::tracing::info;

use crate::api::lab::v1::Oddity;

/// Reconciles Oddity objects.
#[derive(Debug)]
pub struct OddityReconciler;

/// Registers the controller with the manager. Add the kinds that it creates: `.owns::<Deployment>()`.
pub fn register(manager: &Manager) -> Result<(), RegisterError> {
    manager.controller(OddityReconciler).register()
}

// The operator can read oddities and write their status. Declare other permissions here, such as
// #[rbac(groups = "apps", resources = "deployments", verbs = "create, patch, delete")]
impl Reconciler for OddityReconciler {
    type Object = Oddity;

    async fn reconcile(&self, object: &Oddity, _cx: &Context) -> Result<Outcome> {
        if object.metadata.deletion_timestamp.is_some() {
            // Owned objects are deleted by the garbage collector.
            return Ok(Outcome::done());
        }
        info!(generation = object.metadata.generation, "reconciling");
        // Create and update owned objects here: `cx.apply_owned(child).await?`.
        Ok(Outcome::done())
    }
}
