//! Brings the world to what an Order wants.

use std::sync::Arc;

use kubewright::RegisterError;
use kubewright::condition::{ConditionUpdate, set_condition};
use kubewright::prelude::*;
use kubewright::serde_json::json;
use kubewright::tracing::info;

use crate::api::v1::Order;

/// The condition that this controller sets.
const READY: &str = "Ready";

/// Reconciles objects of the kind Order.
#[derive(Debug)]
pub struct OrderReconciler;

/// Gives the manager the controller. What it creates and wants to follow is named here: `.owns::<Deployment>()`.
pub fn register(manager: &Manager) -> Result<(), RegisterError> {
    manager.controller(OrderReconciler).register()
}

// Rights beside reading orders and writing their status are declared here, such as
// #[rbac(groups = "apps", resources = "deployments", verbs = "create, patch, delete")]
impl Reconciler for OrderReconciler {
    type Object = Order;

    async fn reconcile(&self, object: Arc<Order>, cx: &Context) -> Result<Outcome> {
        if object.metadata.deletion_timestamp.is_some() {
            // What it owns goes with it.
            return Ok(Outcome::done());
        }
        info!(generation = object.metadata.generation, "reconciling");
        // Bring the world to what the spec wants here: `cx.client().apply(&child).await?`.
        report(&object, cx).await?;
        Ok(Outcome::done())
    }
}

/// Writes the status, if it is another than before.
async fn report(object: &Order, cx: &Context) -> Result<()> {
    let before = object.status.clone().unwrap_or_default();
    let mut status = before.clone();
    let ready = ConditionUpdate::truthy(READY, "Reconciled", "it is as the spec wants it")
        .observed(object.metadata.generation);
    set_condition(&mut status.conditions, ready, cx.now());
    if status != before {
        let patch = Patch::merge(json!({ "status": status }))?;
        cx.client().status().patch(object, &patch).await?;
    }
    Ok(())
}
