//! Moves the cluster's actual state toward the desired state of a Warehouse.

use kubewright::condition::{ConditionUpdate, set_condition};
use kubewright::prelude::*;
use kubewright::tracing::info;
use kubewright::{Context, RegisterError, Result};

use crate::api::stock::v1beta1::Warehouse;

/// Condition type set by this controller.
const READY: &str = "Ready";

/// Reconciles Warehouse objects.
#[derive(Debug)]
pub struct WarehouseReconciler;

/// Registers the controller with the manager. Declare owned kinds here: `.owns::<Deployment>()`.
pub fn register(manager: &Manager) -> Result<(), RegisterError> {
    manager.controller(WarehouseReconciler).register()
}

// RBAC rules for warehouses and their status are derived. Declare others here, for example:
// #[rbac(groups = "apps", resources = "deployments", verbs = "create, patch, delete")]
impl Reconciler for WarehouseReconciler {
    type Object = Warehouse;

    async fn reconcile(&self, object: &Warehouse, cx: &Context) -> Result<Outcome> {
        if object.metadata.deletion_timestamp.is_some() {
            // The garbage collector deletes owned objects.
            return Ok(Outcome::done());
        }
        info!(generation = object.metadata.generation, "Reconciling");
        // Create and update owned objects here: `cx.apply_owned(child).await?`.
        let mut status = object.status.clone().unwrap_or_default();
        let ready = ConditionUpdate::true_(READY, "Reconciled", "Reconciled successfully")
            .observed(object.metadata.generation);
        set_condition(&mut status.conditions, ready, cx.now());
        cx.set_status(&status).await?;
        Ok(Outcome::done())
    }
}
