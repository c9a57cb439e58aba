//! Moves the cluster's actual state toward the desired state of an Oddity.

use kubewright::prelude::*;
use kubewright::tracing::info;
use kubewright::{Context, RegisterError, Result};

use crate::api::lab::v1::Oddity;

/// Reconciles Oddity objects.
#[derive(Debug)]
pub struct OddityReconciler;

/// Registers the controller with the manager. Declare owned kinds here: `.owns::<Deployment>()`.
pub fn register(manager: &Manager) -> Result<(), RegisterError> {
    manager.controller(OddityReconciler).register()
}

// RBAC rules for oddities and their status are derived. Declare others here, for example:
// #[rbac(groups = "apps", resources = "deployments", verbs = "create, patch, delete")]
impl Reconciler for OddityReconciler {
    type Object = Oddity;

    async fn reconcile(&self, object: &Oddity, _cx: &Context) -> Result<Outcome> {
        if object.metadata.deletion_timestamp.is_some() {
            // The garbage collector deletes owned objects.
            return Ok(Outcome::done());
        }
        info!(generation = object.metadata.generation, "Reconciling");
        // Create and update owned objects here: `cx.apply_owned(child).await?`.
        Ok(Outcome::done())
    }
}
