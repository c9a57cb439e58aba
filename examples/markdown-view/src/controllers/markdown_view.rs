//! Moves the cluster's actual state toward the desired state of a MarkdownView.

mod children;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kubewright::condition::{ConditionUpdate, is_true, set_condition};
use kubewright::prelude::*;
use kubewright::prometheus_client::metrics::{family::Family, gauge::Gauge};
use kubewright::{Context, Key, RegisterError, Result};

use crate::api::v1::MarkdownView;

/// Whether at least one viewer serves the pages.
const AVAILABLE: &str = "Available";
/// Whether the actual state differs from the desired state.
const DEGRADED: &str = "Degraded";

/// Reconciles MarkdownViews.
#[derive(Debug, Default)]
pub struct MarkdownViewReconciler {
    /// Whether a view is available, by name and namespace.
    available: Family<[(&'static str, String); 2], Gauge>,
}

/// Registers the controller and its gauge with the manager.
pub fn register(manager: &Manager) -> Result<(), RegisterError> {
    let reconciler = MarkdownViewReconciler::default();
    let (help, gauge) = ("Whether the pages of a MarkdownView are served", reconciler.available.clone());
    manager.metrics().with_registry(|registry| registry.register("markdownview_available", help, gauge));
    manager.controller(reconciler).owns::<ConfigMap>().owns::<Deployment>().owns::<Service>().register()
}

#[rbac(groups = "", resources = "configmaps, services", verbs = "create, patch")]
#[rbac(groups = "apps", resources = "deployments", verbs = "create, patch")]
impl Reconciler for MarkdownViewReconciler {
    type Object = MarkdownView;

    async fn reconcile(&self, view: &MarkdownView, cx: &Context) -> Result<Outcome> {
        if view.metadata.deletion_timestamp.is_some() {
            // The garbage collector deletes the owned objects.
            return Ok(Outcome::done());
        }
        let applied = apply(view, cx).await;
        let mut status = view.status.clone().unwrap_or_default();
        let was_available = is_true(&status.conditions, AVAILABLE);
        for update in conditions(view, &applied) {
            set_condition(&mut status.conditions, update.observed(view.metadata.generation), cx.now());
        }
        cx.set_status(&status).await?;
        let is_available = is_true(&status.conditions, AVAILABLE);
        match (was_available, is_available) {
            (false, true) => cx.events().normal(view, "Available").note("The viewers serve the pages"),
            (true, false) => cx.events().warning(view, "Unavailable").note("No viewer serves the pages"),
            _ => {}
        }
        self.available.get_or_create(&labels(cx.key())).set(is_available.into());
        applied?;
        Ok(Outcome::done())
    }

    async fn deleted(&self, key: &Key, _: &Context) -> Result<Outcome> {
        self.available.remove(&labels(key));
        Ok(Outcome::done())
    }
}

fn labels(key: &Key) -> [(&'static str, String); 2] {
    [("name", key.name().to_owned()), ("namespace", key.namespace().unwrap_or_default().to_owned())]
}

/// Applies the objects that the view owns. Unchanged objects are not sent.
async fn apply(view: &MarkdownView, cx: &Context) -> Result<Deployment> {
    cx.apply_owned(children::pages(view)).await?;
    cx.apply_owned(children::service(view)).await?;
    Ok(cx.apply_owned(children::viewers(view)).await?)
}

/// The conditions of the view, from its Deployment or from the error of the apply.
fn conditions(view: &MarkdownView, applied: &Result<Deployment>) -> Vec<ConditionUpdate> {
    let deployment = match applied {
        Ok(deployment) => deployment,
        // Running viewers keep serving, so Available is not changed.
        Err(error) => return vec![ConditionUpdate::true_(DEGRADED, "Failed", format!("{error:#}"))],
    };
    let available = deployment.status.as_ref().and_then(|status| status.available_replicas).unwrap_or(0);
    let wanted = view.spec.replicas;
    let count = format!("{available} of {wanted} viewers are available");
    let serves = available > 0 || wanted == 0;
    let reason = if serves { "OK" } else { "Unavailable" };
    let is_available = ConditionUpdate::new(AVAILABLE, serves.into(), reason, &count);
    let reason = if available < wanted { "Reconciling" } else { "OK" };
    vec![is_available, ConditionUpdate::new(DEGRADED, (available < wanted).into(), reason, &count)]
}
