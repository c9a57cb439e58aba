//! Tests operator startup and shutdown.

use anyhow::Result;
use kubewright_envtest::Environment;

use cronjob::registry;

#[tokio::test]
async fn the_operator_starts_and_stops() -> Result<()> {
    let env = Environment::start().await?;
    let manager = env.manager("cronjob")?;
    registry::register(&manager)?;
    Ok(env.run(manager).stop().await?)
}
