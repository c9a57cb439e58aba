//! Brings the world to what a MarkdownView wants.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kubewright::condition::{ConditionUpdate, is_true, set_condition};
use kubewright::owner::set_controller_reference;
use kubewright::prelude::*;
use kubewright::{RegisterError, serde_json::json};

use crate::api::v1::{MarkdownView, MarkdownViewStatus};

/// Reconciles MarkdownViews.
#[derive(Debug)]
pub struct MarkdownViewReconciler;

/// Gives the manager the controller of MarkdownViews.
pub fn register(manager: &Manager) -> Result<(), RegisterError> {
    manager
        .controller(MarkdownViewReconciler)
        .owns::<ConfigMap>()
        .owns::<Deployment>()
        .owns::<Service>()
        .register()
}

#[rbac(groups = "", resources = "configmaps, services", verbs = "create, update, patch, delete")]
#[rbac(groups = "apps", resources = "deployments", verbs = "create, update, patch, delete")]
impl Reconciler for MarkdownViewReconciler {
    type Object = MarkdownView;

    async fn reconcile(&self, view: Arc<MarkdownView>, cx: &Context) -> Result<Outcome> {
        if view.metadata.deletion_timestamp.is_some() {
            return Ok(Outcome::done());
        }
        cx.client().apply(&pages(&view)?).await?;
        cx.client().apply(&service(&view)?).await?;
        let deployment = cx.client().apply(&viewers(&view)?).await?;
        report(&view, &deployment, cx).await?;
        Ok(Outcome::done())
    }
}

/// The ConfigMap with the pages.
fn pages(view: &MarkdownView) -> Result<ConfigMap> {
    let mut map: ConfigMap = serde_json::from_value(json!({
        "metadata": { "name": format!("markdowns-{}", view.name_any()), "namespace": view.namespace() },
        "data": view.spec.markdowns,
    }))?;
    set_controller_reference(view, &mut map)?;
    Ok(map)
}

/// The Deployment of the viewers.
fn viewers(view: &MarkdownView) -> Result<Deployment> {
    let labels = labels(view);
    let mut deployment: Deployment = serde_json::from_value(json!({
        "metadata": { "name": format!("viewer-{}", view.name_any()), "namespace": view.namespace(), "labels": labels },
        "spec": {
            "replicas": view.spec.replicas,
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": {
                    "containers": [{
                        "name": "mdbook",
                        "image": view.spec.viewer_image,
                        "command": ["mdbook"],
                        "args": ["serve", "--hostname", "0.0.0.0"],
                        "ports": [{ "name": "http", "protocol": "TCP", "containerPort": 3000 }],
                        "livenessProbe": { "httpGet": { "port": "http", "path": "/", "scheme": "HTTP" } },
                        "readinessProbe": { "httpGet": { "port": "http", "path": "/", "scheme": "HTTP" } },
                        "volumeMounts": [{ "name": "markdowns", "mountPath": "/book/src" }],
                    }],
                    "volumes": [{
                        "name": "markdowns",
                        "configMap": { "name": format!("markdowns-{}", view.name_any()) },
                    }],
                },
            },
        },
    }))?;
    set_controller_reference(view, &mut deployment)?;
    Ok(deployment)
}

/// The Service in front of the viewers.
fn service(view: &MarkdownView) -> Result<Service> {
    let labels = labels(view);
    let mut service: Service = serde_json::from_value(json!({
        "metadata": { "name": format!("viewer-{}", view.name_any()), "namespace": view.namespace(), "labels": labels },
        "spec": {
            "type": "ClusterIP",
            "selector": labels,
            "ports": [{ "protocol": "TCP", "port": 80, "targetPort": "http" }],
        },
    }))?;
    set_controller_reference(view, &mut service)?;
    Ok(service)
}

fn labels(view: &MarkdownView) -> serde_json::Value {
    json!({
        "app.kubernetes.io/name": "mdbook",
        "app.kubernetes.io/instance": view.name_any(),
        "app.kubernetes.io/created-by": "markdown-view",
    })
}

/// Writes the conditions, if they are others than before.
async fn report(view: &MarkdownView, deployment: &Deployment, cx: &Context) -> Result<()> {
    let before = view.status.clone().unwrap_or_default();
    let status = MarkdownViewStatus { conditions: conditions(view, deployment, cx) };
    if status.conditions == before.conditions {
        return Ok(());
    }
    cx.client().status().patch(view, &Patch::merge(json!({ "status": status }))?).await?;
    match (is_true(&before.conditions, "Available"), is_true(&status.conditions, "Available")) {
        (false, true) => cx.events().normal(view, "Available", "Report", "the viewers serve the pages"),
        (true, false) => cx.events().warning(view, "Unavailable", "Report", "no viewer serves the pages"),
        _ => {}
    }
    Ok(())
}

fn conditions(
    view: &MarkdownView,
    deployment: &Deployment,
    cx: &Context,
) -> Vec<k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition> {
    let available = deployment.status.as_ref().and_then(|status| status.available_replicas).unwrap_or(0);
    let wanted = view.spec.replicas;
    let count = format!("{available} of {wanted} viewers are available");
    let is_available = if available > 0 || wanted == 0 {
        ConditionUpdate::truthy("Available", "OK", &count)
    } else {
        ConditionUpdate::falsy("Available", "Unavailable", &count)
    };
    let is_degraded = if available < wanted {
        ConditionUpdate::truthy("Degraded", "Reconciling", &count)
    } else {
        ConditionUpdate::falsy("Degraded", "OK", &count)
    };
    let mut conditions = view.status.clone().unwrap_or_default().conditions;
    for update in [is_available, is_degraded] {
        set_condition(&mut conditions, update.observed(view.metadata.generation), cx.now());
    }
    conditions
}
