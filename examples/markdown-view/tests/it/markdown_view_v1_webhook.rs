//! Tests the webhooks for MarkdownView, version v1.

use anyhow::{Result, ensure};
use kubewright_envtest::Environment;

use markdown_view::api::v1::MarkdownView;
use markdown_view::webhooks;

/// Test objects and expected responses. Add objects to `default`, `valid` and `invalid`; `UPDATE_FIXTURES=1 cargo test`
/// writes the responses.
const FIXTURES: &str = "tests/fixtures/webhooks/v1/markdown_view";
/// Webhook paths.
const WEBHOOKS: &str = "
/mutate-view-example-com-v1-markdownview
/validate-view-example-com-v1-markdownview
";

#[tokio::test]
async fn the_fixtures_match() -> Result<()> {
    let env = Environment::builder()
        .crd::<MarkdownView>()
        .crd::<markdown_view::api::v2::MarkdownView>()
        .start()
        .await?;
    let manager = env.manager("markdown-view")?;
    webhooks::v1::markdown_view::register(&manager)?;
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
