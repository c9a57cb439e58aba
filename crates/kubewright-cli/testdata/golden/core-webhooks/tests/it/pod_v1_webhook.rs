//! Tests the webhooks for Pod, version v1.

use anyhow::{Result, ensure};
use kubewright_envtest::Environment;

use shop::webhooks;

/// Test objects and expected responses. Add objects to `default`, `valid` and `invalid`; `UPDATE_FIXTURES=1 cargo test`
/// writes the responses.
const FIXTURES: &str = "tests/fixtures/webhooks/v1/pod";
/// Webhook paths.
const WEBHOOKS: &str = "
/mutate--v1-pod
";

#[tokio::test]
async fn the_fixtures_match() -> Result<()> {
    let env = Environment::start().await?;
    let manager = env.manager("shop")?;
    webhooks::v1::pod::register(&manager)?;
    let mut running = env.run(manager);
    running.ready().await?;

    env.fixtures(FIXTURES).await?;
    for path in WEBHOOKS.split_whitespace() {
        let labels = [("webhook", path), ("code", "200")];
        let metrics = running.metrics();
        let calls = metrics.value("controller_runtime_webhook_requests_total", &labels);
        ensure!(calls >= Some(1.0), "{path} was not called");
    }
    Ok(running.stop().await?)
}
