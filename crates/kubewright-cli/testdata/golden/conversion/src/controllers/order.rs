//! Moves the cluster's actual state toward the desired state of an Order.

use kubewright::RegisterError;
use kubewright::condition::{ConditionUpdate, set_condition};
use kubewright::prelude::*;
use kubewright::tracing::info;

use crate::api::v1::Order;

/// The condition that this controller sets.
const READY: &str = "Ready";

/// Reconciles Order objects.
#[derive(Debug)]
pub struct OrderReconciler;

/// Registers the controller with the manager. Add the kinds that it creates: `.owns::<Deployment>()`.
pub fn register(manager: &Manager) -> Result<(), RegisterError> {
    manager.controller(OrderReconciler).register()
}

// The operator can read orders and write their status. Declare other permissions here, such as
// #[rbac(groups = "apps", resources = "deployments", verbs = "create, patch, delete")]
impl Reconciler for OrderReconciler {
    type Object = Order;

    async fn reconcile(&self, object: &Order, cx: &Context) -> Result<Outcome> {
        if object.metadata.deletion_timestamp.is_some() {
            // Owned objects are deleted by the garbage collector.
            return Ok(Outcome::done());
        }
        info!(generation = object.metadata.generation, "reconciling");
        // Create and update owned objects here: `cx.apply_owned(child).await?`.
        let mut status = object.status.clone().unwrap_or_default();
        let ready = ConditionUpdate::true_(READY, "Reconciled", "Reconciled successfully")
            .observed(object.metadata.generation);
        set_condition(&mut status.conditions, ready, cx.now());
        cx.set_status(&status).await?;
        Ok(Outcome::done())
    }
}
