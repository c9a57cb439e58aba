//! Tests the webhooks for CronJob, version v1.

use anyhow::{Result, ensure};
use kubewright_envtest::Environment;

use cronjob::api::v1::CronJob;
use cronjob::webhooks;

/// Test objects and expected responses. Add objects to `default`, `valid` and `invalid`; `UPDATE_FIXTURES=1 cargo test`
/// writes the responses.
const FIXTURES: &str = "tests/fixtures/webhooks/v1/cron_job";
/// Webhook paths.
const WEBHOOKS: &str = "
/mutate-batch-tutorial-kubebuilder-io-v1-cronjob
/validate-batch-tutorial-kubebuilder-io-v1-cronjob
";

#[tokio::test]
async fn the_fixtures_match() -> Result<()> {
    let env = Environment::builder().crd::<CronJob>().crd::<cronjob::api::v2::CronJob>().start().await?;
    let manager = env.manager("cronjob")?;
    webhooks::v1::cron_job::register(&manager)?;
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
