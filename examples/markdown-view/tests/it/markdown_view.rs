//! A MarkdownView gets what it needs, follows its spec, and says how it is.

use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kubewright::condition::{is_false, is_true};
use kubewright::prelude::*;
use kubewright_envtest::{Environment, eventually, matches_yaml};
use markdown_view::api::v1::MarkdownView;
use markdown_view::registry;

const LIMIT: Duration = Duration::from_secs(10);
const SAMPLE: &str = include_str!("../../config/samples/view_v1_markdownview.yaml");

#[tokio::test]
async fn a_view_has_pages_viewers_and_a_service() -> Result<()> {
    let env = Environment::builder().crd::<MarkdownView>().start().await?;
    let (namespace, client) = (env.namespace().await?, env.runtime_client());
    let manager = env.manager("markdown-view")?;
    registry::register(&manager)?;
    let running = env.run(manager);
    env.apply_yaml(&namespace, SAMPLE).await?;
    let key = |name: &str| Key::namespaced(&namespace, name);

    eventually(LIMIT, async || {
        let map = client.get::<ConfigMap>(&key("markdowns-markdownview-sample")).await?;
        ensure!(map.data.as_ref().is_some_and(|data| data.len() == 2), "{:?}", map.data);
        let deployment = client.get::<Deployment>(&key("viewer-markdownview-sample")).await?;
        matches_yaml(&*deployment, "{spec: {replicas: 1}}")?;
        let service = client.get::<Service>(&key("viewer-markdownview-sample")).await?;
        Ok(matches_yaml(&*service, "{spec: {ports: [{port: 80, targetPort: http}]}}")?)
    })
    .await?;

    client.modify::<MarkdownView>(&key("markdownview-sample"), |view| view.spec.replicas = 3).await?;
    eventually(LIMIT, async || {
        let deployment = client.get::<Deployment>(&key("viewer-markdownview-sample")).await?;
        anyhow::Ok(matches_yaml(&*deployment, "{spec: {replicas: 3}}")?)
    })
    .await?;
    Ok(running.stop().await?)
}

#[tokio::test]
async fn a_view_is_available_when_a_viewer_is() -> Result<()> {
    let env = Environment::builder().crd::<MarkdownView>().start().await?;
    let (namespace, client) = (env.namespace().await?, env.runtime_client());
    let manager = env.manager("markdown-view")?;
    registry::register(&manager)?;
    let running = env.run(manager);
    env.apply_yaml(&namespace, SAMPLE).await?;
    let view = Key::namespaced(&namespace, "markdownview-sample");
    let deployment = Key::namespaced(&namespace, "viewer-markdownview-sample");

    eventually(LIMIT, async || {
        let conditions =
            client.get::<MarkdownView>(&view).await?.status.clone().unwrap_or_default().conditions;
        ensure!(is_false(&conditions, "Available") && is_true(&conditions, "Degraded"), "{conditions:?}");
        Ok(())
    })
    .await?;
    let status = Patch::merge(
        serde_json::json!({ "status": { "replicas": 1, "readyReplicas": 1, "availableReplicas": 1 } }),
    )?;
    client.status().patch(&*client.get::<Deployment>(&deployment).await?, &status).await?;
    eventually(LIMIT, async || {
        let conditions =
            client.get::<MarkdownView>(&view).await?.status.clone().unwrap_or_default().conditions;
        ensure!(is_true(&conditions, "Available") && is_false(&conditions, "Degraded"), "{conditions:?}");
        Ok(())
    })
    .await?;
    let events = eventually(LIMIT, async || {
        let events = env.events(&namespace).await?;
        ensure!(!events.is_empty(), "no event yet");
        Ok(events)
    })
    .await?;
    assert_eq!(events[0].reason.as_deref(), Some("Available"));
    Ok(running.stop().await?)
}
