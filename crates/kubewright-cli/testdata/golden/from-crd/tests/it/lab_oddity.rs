//! The controller of oddities runs. Say in the sample what the definition wants, and test what becomes of it.

use anyhow::Result;
use kubewright_envtest::Environment;

use shop::api::lab::v1::Oddity;
use shop::controllers;

#[tokio::test]
async fn the_controller_runs() -> Result<()> {
    let env = Environment::builder().crd::<Oddity>().start().await?;
    let manager = env.manager("shop")?;
    controllers::lab::oddity::register(&manager)?;
    Ok(env.run(manager).stop().await?)
}
