//! Tests the oddity controller. Add an object and test what the controller does with it.

use anyhow::Result;
use kubewright_envtest::Environment;

use shop::api::lab::v1::Oddity;
use shop::controllers;

#[tokio::test]
async fn the_controller_starts_and_stops() -> Result<()> {
    let env = Environment::builder().crd::<Oddity>().start().await?;
    let manager = env.manager("shop")?;
    controllers::lab::oddity::register(&manager)?;
    Ok(env.run(manager).stop().await?)
}
