//! A test of an operator, written as the kubebuilder tutorial has it.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kubewright_envtest::{Environment, eventually, matches_yaml};
use kubewright_runtime::condition::{ConditionUpdate, is_true, set_condition};
use kubewright_runtime::owner::set_controller_reference;
use kubewright_runtime::{Context, Key, Outcome, Patch, Reconciler};
use serde_json::json;

use self::view::{MarkdownView, MarkdownViewStatus};

mod view {
    //! The kind of the tutorial.

    use std::collections::BTreeMap;

    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
    use kube::CustomResource;
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, JsonSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "view.example.com",
        version = "v1",
        kind = "MarkdownView",
        namespaced,
        status = "MarkdownViewStatus"
    )]
    #[serde(rename_all = "camelCase")]
    pub(super) struct MarkdownViewSpec {
        /// The pages by their names.
        pub(super) markdowns: BTreeMap<String, String>,
        /// How many viewers run.
        pub(super) replicas: Option<i32>,
    }

    #[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default)]
    pub(super) struct MarkdownViewStatus {
        /// How it goes.
        #[serde(default)]
        pub(super) conditions: Vec<Condition>,
    }
}

struct Viewer;

impl Reconciler for Viewer {
    type Object = MarkdownView;

    async fn reconcile(&self, view: Arc<MarkdownView>, cx: &Context) -> kubewright_runtime::Result<Outcome> {
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
        set_controller_reference(&*view, &mut map)?;
        set_controller_reference(&*view, &mut deployment)?;
        set_controller_reference(&*view, &mut service)?;
        cx.client().apply(&map).await?;
        cx.client().apply(&deployment).await?;
        cx.client().apply(&service).await?;

        let mut status = view.status.clone().unwrap_or_default();
        let update = ConditionUpdate::truthy("Available", "OK", "everything is there")
            .observed(view.metadata.generation);
        if set_condition(&mut status.conditions, update, cx.now()) {
            cx.client().status().patch(&*view, &Patch::merge(json!({ "status": status }))?).await?;
        }
        Ok(Outcome::done())
    }
}

#[tokio::test]
async fn a_view_gets_what_it_needs_and_takes_it_along_when_it_goes() -> Result<()> {
    let env = Environment::builder().crd::<MarkdownView>().start().await?;
    let (namespace, client) = (env.namespace().await?, env.runtime_client());
    let manager = env.manager("markdown-view")?;
    manager.controller(Viewer).owns::<ConfigMap>().owns::<Deployment>().owns::<Service>().register()?;
    let running = env.run(manager);
    let key = Key::namespaced(&namespace, "sample");
    let limit = Duration::from_secs(10);

    let sample = "{apiVersion: view.example.com/v1, kind: MarkdownView, metadata: {name: sample}, \
                   spec: {markdowns: {SUMMARY.md: '# Summary'}, replicas: 2}}";
    env.apply_yaml(&namespace, sample).await?;
    let status: MarkdownViewStatus = eventually(limit, async || {
        let status = client.get::<MarkdownView>(&key).await?.status.clone().unwrap_or_default();
        ensure!(is_true(&status.conditions, "Available"), "{status:?}");
        Ok(status)
    })
    .await?;
    assert_eq!(status.conditions[0].observed_generation, Some(1));
    matches_yaml(&*client.get::<ConfigMap>(&key).await?, "{data: {SUMMARY.md: '# Summary'}}")?;
    matches_yaml(&*client.get::<Deployment>(&key).await?, "{spec: {replicas: 2}}")?;
    matches_yaml(&*client.get::<Service>(&key).await?, "{spec: {ports: [{port: 80, targetPort: 3000}]}}")?;

    client.modify::<MarkdownView>(&key, |view| view.spec.replicas = Some(3)).await?;
    eventually(limit, async || {
        anyhow::Ok(matches_yaml(&*client.get::<Deployment>(&key).await?, "{spec: {replicas: 3}}")?)
    })
    .await?;

    client.delete(&*client.get::<MarkdownView>(&key).await?).await?;
    if env.capabilities().garbage_collection {
        eventually(limit, async || {
            ensure!(client.get_opt::<Deployment>(&key).await?.is_none(), "the Deployment is still there");
            Ok(())
        })
        .await?;
    }
    Ok(running.stop().await?)
}
