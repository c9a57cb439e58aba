//! A test of an operator, as in the kubebuilder tutorial. It runs on every kind of control plane.

use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kubewright_envtest::{Environment, eventually, matches_yaml};
use kubewright_runtime::Key;
use kubewright_runtime::condition::is_true;

use crate::markdown_view::{MarkdownView, Viewer};

const LIMIT: Duration = Duration::from_secs(10);
const SAMPLE: &str = "{apiVersion: view.example.com/v1, kind: MarkdownView, metadata: {name: sample}, \
                      spec: {markdowns: {SUMMARY.md: '# Summary'}, replicas: 2}}";

#[tokio::test]
async fn a_view_gets_its_children_and_they_are_garbage_collected() -> Result<()> {
    let env = Environment::builder().crd::<MarkdownView>().start().await?;
    let (namespace, client) = (env.namespace().await?, env.runtime_client());
    let manager = env.manager("markdown-view")?;
    manager.controller(Viewer).owns::<ConfigMap>().owns::<Deployment>().owns::<Service>().register()?;
    let running = env.run(manager);

    env.apply_yaml(&namespace, SAMPLE).await?;
    let key = Key::namespaced(&namespace, "sample");
    let view = eventually(LIMIT, async || {
        let view = client.get::<MarkdownView>(&key).await?;
        let conditions = view.status.clone().unwrap_or_default().conditions;
        ensure!(is_true(&conditions, "Available"), "{conditions:?}");
        Ok(view)
    })
    .await?;
    matches_yaml(&*view, "{status: {conditions: [{type: Available, observedGeneration: 1}]}}")?;
    matches_yaml(&*client.get::<ConfigMap>(&key).await?, "{data: {SUMMARY.md: '# Summary'}}")?;
    let deployment =
        "{metadata: {ownerReferences: [{kind: MarkdownView, name: sample}]}, spec: {replicas: 2}}";
    matches_yaml(&*client.get::<Deployment>(&key).await?, deployment)?;
    matches_yaml(&*client.get::<Service>(&key).await?, "{spec: {ports: [{port: 80, targetPort: 3000}]}}")?;

    client.modify::<MarkdownView>(&key, |view| view.spec.replicas = Some(3)).await?;
    eventually(LIMIT, async || {
        anyhow::Ok(matches_yaml(&*client.get::<Deployment>(&key).await?, "{spec: {replicas: 3}}")?)
    })
    .await?;

    client.delete(&*view).await?;
    if env.capabilities().garbage_collection {
        eventually(LIMIT, async || {
            ensure!(client.get_opt::<ConfigMap>(&key).await?.is_none(), "the ConfigMap is still there");
            ensure!(client.get_opt::<Deployment>(&key).await?.is_none(), "the Deployment is still there");
            ensure!(client.get_opt::<Service>(&key).await?.is_none(), "the Service is still there");
            Ok(())
        })
        .await?;
    }
    Ok(running.stop().await?)
}
