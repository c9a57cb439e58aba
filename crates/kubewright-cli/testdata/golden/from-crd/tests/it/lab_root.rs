//! Tests the root controller.

use anyhow::Result;
use kubewright::Key;
use kubewright_envtest::Environment;

use shop::api::lab::v1::Root;
use shop::controllers;

const NAME: &str = "root-sample";
const SAMPLE: &str = include_str!("../../config/samples/lab_v1_root.yaml");

#[tokio::test]
async fn the_sample_is_accepted() -> Result<()> {
    let env = Environment::builder().crd::<Root>().start().await?;
    let (namespace, client) = (env.namespace().await?, env.runtime_client());
    let manager = env.manager("shop")?;
    controllers::lab::root::register(&manager)?;
    let running = env.run(manager);
    env.apply_yaml(&namespace, SAMPLE).await?;

    let key = Key::namespaced(&namespace, NAME);
    client.get::<Root>(&key).await?;
    Ok(running.stop().await?)
}
