//! Brings the world to what a MarkdownView wants.

mod children;

use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kubewright::condition::{ConditionUpdate, is_true, set_condition};
use kubewright::metrics::Metrics;
use kubewright::prelude::*;
use kubewright::prometheus_client::metrics::{family::Family, gauge::Gauge};
use kubewright::{RegisterError, serde_json::json};

use crate::api::v1::MarkdownView;

/// The condition of a view whose pages are served.
const AVAILABLE: &str = "Available";
/// The condition of a view that is not yet, or no longer, as its spec wants it.
const DEGRADED: &str = "Degraded";

/// Reconciles objects of the kind MarkdownView.
#[derive(Debug)]
pub struct MarkdownViewReconciler {
    /// Whether a view is available, by its name and namespace.
    available: Family<[(&'static str, String); 2], Gauge>,
}

/// Gives the manager the controller of MarkdownViews.
pub fn register(manager: &Manager) -> Result<(), RegisterError> {
    manager
        .controller(MarkdownViewReconciler::new(manager.metrics()))
        .owns::<ConfigMap>()
        .owns::<Deployment>()
        .owns::<Service>()
        .register()
}

impl MarkdownViewReconciler {
    /// A reconciler that counts there.
    pub fn new(metrics: &Metrics) -> Self {
        let available = Family::default();
        metrics.with_registry(|registry| {
            let help = "Whether the pages of a MarkdownView are served";
            registry.register("markdownview_available", help, available.clone());
        });
        Self { available }
    }
}

#[rbac(groups = "", resources = "configmaps, services", verbs = "create, patch")]
#[rbac(groups = "apps", resources = "deployments", verbs = "create, patch")]
impl Reconciler for MarkdownViewReconciler {
    type Object = MarkdownView;

    async fn reconcile(&self, view: Arc<MarkdownView>, cx: &Context) -> Result<Outcome> {
        if view.metadata.deletion_timestamp.is_some() {
            // What it owns goes with it.
            return Ok(Outcome::done());
        }
        let applied = apply(&view, cx).await;
        let is_available = report(&view, &conditions(&view, &applied), cx).await;
        applied?;
        self.available.get_or_create(&labels(cx.key())).set(is_available?.into());
        Ok(Outcome::done())
    }

    async fn gone(&self, key: &Key, _: &Context) -> Result<Outcome> {
        self.available.remove(&labels(key));
        Ok(Outcome::done())
    }
}

fn labels(key: &Key) -> [(&'static str, String); 2] {
    [("name", key.name().to_owned()), ("namespace", key.namespace().unwrap_or_default().to_owned())]
}

/// Brings everything that the view owns to what it wants. Nothing is sent where nothing changed.
async fn apply(view: &MarkdownView, cx: &Context) -> Result<Deployment> {
    cx.client().apply(&children::pages(view)?).await?;
    cx.client().apply(&children::service(view)?).await?;
    Ok(cx.client().apply(&children::viewers(view)?).await?)
}

/// What is true of the view, by how its Deployment is, or by why there is none as it should be.
fn conditions(view: &MarkdownView, applied: &Result<Deployment>) -> Vec<ConditionUpdate> {
    let deployment = match applied {
        Ok(deployment) => deployment,
        // Viewers that run go on: whether it is available stays as it was.
        Err(error) => return vec![ConditionUpdate::truthy(DEGRADED, "Failed", error.to_string())],
    };
    let available = deployment.status.as_ref().and_then(|status| status.available_replicas).unwrap_or(0);
    let wanted = view.spec.replicas;
    let count = format!("{available} of {wanted} viewers are available");
    let is_available = if available > 0 || wanted == 0 {
        ConditionUpdate::truthy(AVAILABLE, "OK", &count)
    } else {
        ConditionUpdate::falsy(AVAILABLE, "Unavailable", &count)
    };
    let is_degraded = if available < wanted {
        ConditionUpdate::truthy(DEGRADED, "Reconciling", &count)
    } else {
        ConditionUpdate::falsy(DEGRADED, "OK", &count)
    };
    vec![is_available, is_degraded]
}

/// Writes the conditions if they are others than before, and an event when it becomes available or no longer is. Tells
/// whether it is.
async fn report(view: &MarkdownView, updates: &[ConditionUpdate], cx: &Context) -> Result<bool> {
    let before = view.status.clone().unwrap_or_default();
    let mut status = before.clone();
    for update in updates {
        let update = update.clone().observed(view.metadata.generation);
        set_condition(&mut status.conditions, update, cx.now());
    }
    if status != before {
        cx.client().status().patch(view, &Patch::merge(json!({ "status": status }))?).await?;
    }
    let is_available = is_true(&status.conditions, AVAILABLE);
    match (is_true(&before.conditions, AVAILABLE), is_available) {
        (false, true) => cx.events().normal(view, "Available", "Report", "the viewers serve the pages"),
        (true, false) => cx.events().warning(view, "Unavailable", "Report", "no viewer serves the pages"),
        _ => {}
    }
    Ok(is_available)
}
