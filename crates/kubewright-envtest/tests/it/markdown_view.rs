//! The operator of the tutorial: a MarkdownView has a ConfigMap with its pages, a Deployment of viewers and a Service.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use kubewright::rbac;
use kubewright_runtime::condition::{ConditionUpdate, set_condition};
use kubewright_runtime::owner::set_controller_reference;
use kubewright_runtime::{Context, Outcome, Patch, Reconciler};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(CustomResource, JsonSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "view.example.com",
    version = "v1",
    kind = "MarkdownView",
    namespaced,
    status = "MarkdownViewStatus"
)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MarkdownViewSpec {
    /// The pages by name.
    pub(crate) markdowns: BTreeMap<String, String>,
    /// The number of viewer Pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) replicas: Option<i32>,
}

#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default)]
pub(crate) struct MarkdownViewStatus {
    /// Conditions represent the current state of the MarkdownView.
    #[serde(default)]
    pub(crate) conditions: Vec<Condition>,
}

pub(crate) struct Viewer;

#[rbac(groups = "", resources = "configmaps, services", verbs = "create, patch")]
#[rbac(groups = "apps", resources = "deployments", verbs = "create, patch")]
impl Reconciler for Viewer {
    type Object = MarkdownView;

    async fn reconcile(&self, view: &MarkdownView, cx: &Context) -> kubewright_runtime::Result<Outcome> {
        let (name, namespace) = (cx.key().name(), cx.key().namespace());
        let labels = json!({ "app": name });
        let template = json!({
            "metadata": { "labels": labels },
            "spec": { "containers": [{ "name": "viewer", "image": "peaceiris/mdbook:latest" }] },
        });
        let metadata = json!({ "name": name, "namespace": namespace });
        let mut map: ConfigMap =
            serde_json::from_value(json!({ "metadata": metadata, "data": view.spec.markdowns }))?;
        let mut deployment: Deployment = serde_json::from_value(json!({ "metadata": metadata, "spec": {
            "replicas": view.spec.replicas.unwrap_or(1), "selector": { "matchLabels": labels }, "template": template,
        }}))?;
        let mut service: Service = serde_json::from_value(json!({ "metadata": metadata, "spec": {
            "selector": labels, "ports": [{ "port": 80, "targetPort": 3000 }],
        }}))?;
        set_controller_reference(view, &mut map)?;
        set_controller_reference(view, &mut deployment)?;
        set_controller_reference(view, &mut service)?;
        cx.client().apply(&map).await?;
        cx.client().apply(&deployment).await?;
        cx.client().apply(&service).await?;

        let mut status = view.status.clone().unwrap_or_default();
        let update = ConditionUpdate::true_("Available", "OK", "All children are applied")
            .observed(view.metadata.generation);
        if set_condition(&mut status.conditions, update, cx.now()) {
            cx.client().status().patch(view, &Patch::merge(json!({ "status": status }))).await?;
            cx.events().normal(view, "Available").action("Apply").note("All children are applied");
        }
        Ok(Outcome::done())
    }
}
