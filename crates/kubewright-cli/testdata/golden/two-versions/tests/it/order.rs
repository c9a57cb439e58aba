//! Tests the order controller.

use std::time::Duration;

use anyhow::{Result, ensure};
use kubewright::Key;
use kubewright::condition::is_true;
use kubewright_envtest::{Environment, eventually};

use shop::api::v1::Order;
use shop::controllers;

const LIMIT: Duration = Duration::from_secs(10);
const FILE: &str = "controllers/order.rs";
const READY: &str = "Ready";
const NAME: &str = "order-sample";
const SAMPLE: &str = include_str!("../../config/samples/sales_v1_order.yaml");

#[tokio::test]
async fn the_sample_becomes_ready() -> Result<()> {
    let env = Environment::builder()
        .crd::<Order>()
        .crd::<shop::api::v2::Order>()
        .start()
        .await?;
    let (namespace, client) = (env.namespace().await?, env.runtime_client());
    let manager = env.manager("shop")?;
    controllers::order::register(&manager)?;
    let running = env.run(manager);
    env.apply_yaml(&namespace, SAMPLE).await?;

    let key = Key::namespaced(&namespace, NAME);
    eventually(LIMIT, async || {
        let object = client.get::<Order>(&key).await?;
        let conditions = object.status.clone().unwrap_or_default().conditions;
        ensure!(is_true(&conditions, READY), "{conditions:?}");
        Ok(())
    })
    .await?;
    // Remove the #[rbac] verbs that are listed here, or test what needs them.
    assert_eq!(env.unused_permissions_in(FILE), []);
    Ok(running.stop().await?)
}
