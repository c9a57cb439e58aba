//! Tests the markdownview controller.

use std::time::Duration;

use anyhow::{Result, ensure};
use kubewright::Key;
use kubewright::condition::is_true;
use kubewright_envtest::{Environment, eventually};

use shop::api::view::v1::MarkdownView;
use shop::controllers;

const LIMIT: Duration = Duration::from_secs(10);
const FILE: &str = "controllers/view/markdown_view.rs";
const READY: &str = "Ready";
const NAME: &str = "markdownview-sample";
const SAMPLE: &str = include_str!("../../config/samples/view_v1_markdownview.yaml");

#[tokio::test]
async fn the_sample_becomes_ready() -> Result<()> {
    let env = Environment::builder().crd::<MarkdownView>().start().await?;
    let (namespace, client) = (env.namespace().await?, env.runtime_client());
    let manager = env.manager("shop")?;
    controllers::view::markdown_view::register(&manager)?;
    let running = env.run(manager);
    env.apply_yaml(&namespace, SAMPLE).await?;

    let key = Key::namespaced(&namespace, NAME);
    eventually(LIMIT, async || {
        let object = client.get::<MarkdownView>(&key).await?;
        let conditions = object.status.clone().unwrap_or_default().conditions;
        ensure!(is_true(&conditions, READY), "{conditions:?}");
        Ok(())
    })
    .await?;
    // Remove the #[rbac] verbs that are listed here, or test what needs them.
    assert_eq!(env.unused_permissions_in(FILE), []);
    Ok(running.stop().await?)
}
