//! The page of a manager in headless Chromium.

use anyhow::Result;
use kubewright_runtime::ManagerOptions;
use serde_json::json;

use crate::driver::{Browser, browse};
use crate::world::{World, local};

const NAMES: &str = "[...document.querySelectorAll('#rows .row')].map((row) => row.querySelector('.what').firstChild.textContent)";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_shows_reconciles_with_their_causes_and_no_yaml() -> Result<()> {
    let world = World::start(local()?)?;
    world.config_map("good", &json!({ "key": "value" })).await?;
    world.config_map("bad", &json!({})).await?;
    world.page.log("12:00:00.123 INFO  Label set controller=configmap object=default/good");
    let url = format!("http://{}/debug/page/", world.address().await?);
    browse(1400, 900, async |browser: &Browser| {
        browser.open(&url).await;
        browser.until("document.querySelector('#cluster .say').textContent === 'Connected'").await;
        browser.until(&format!("{NAMES}.includes('good')")).await;
        browser.until("document.querySelector('#operator .say').textContent.startsWith('labeller: 1 failing, ')").await;
        assert_eq!(browser.eval("document.title").await, "kubewright manager");
        assert_eq!(browser.eval("document.querySelector('#build').hidden").await, true);
        assert_eq!(browser.eval("document.querySelector('#signin').open").await, false);
        browser.until("document.querySelector('#logs-count').textContent === '1'").await;

        // The chain of causes.
        let line = "[...document.querySelectorAll('#reconcile-list .line')].find((line) => line.textContent.includes('good'))";
        browser.until(&format!("!!{line}")).await;
        browser.eval(&format!("{line}.click()")).await;
        browser.until("document.querySelector('#reconcile-list .chain')?.textContent.includes('ConfigMap default/good')").await;

        // An object has no YAML, and only read-only commands.
        let row = "[...document.querySelectorAll('#rows .row')].find((row) => row.querySelector('.what').firstChild.textContent === 'good')";
        browser.eval(&format!("{row}.click()")).await;
        browser.until("!document.querySelector('#object').hidden").await;
        browser.until("document.querySelector('#overview-writes')?.textContent.includes('labeller')").await;
        assert_eq!(browser.eval("document.querySelector('#part-yaml').checkVisibility()").await, false);
        let commands = "[...document.querySelectorAll('#overview-kubectl code')].map((code) => code.textContent.split(' ')[1])";
        assert_eq!(browser.eval(commands).await, json!(["get", "describe"]));
        browser.press(&["n"]).await;
        assert_eq!(browser.eval("document.querySelector('#object-yaml').checkVisibility()").await, false);

        // Changes arrive.
        world.config_map("later", &json!({})).await.expect("it is created");
        browser.until(&format!("{NAMES}.includes('later')")).await;
    })
    .await;
    world.end().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secured_page_asks_for_a_token() -> Result<()> {
    let world = World::start(ManagerOptions { metrics_secure: true, ..local()? })?;
    world.config_map("good", &json!({})).await?;
    let url = format!("https://{}/debug/page/", world.address().await?);
    browse(1400, 900, async |browser: &Browser| {
        browser.open(&url).await;
        let sign_in = async |token: &str| {
            browser.until("document.querySelector('#signin').open").await;
            browser.click("#signin-token").await;
            let keys: Vec<String> = token.chars().map(String::from).collect();
            browser.press(&keys.iter().map(String::as_str).collect::<Vec<_>>()).await;
            browser.click("#signin button").await;
        };
        sign_in("bogus").await;
        let error = "document.querySelector('#signin-error').textContent";
        browser.until(&format!("{error} === 'The token is not valid.'")).await;
        assert_eq!(browser.eval("document.body.textContent.includes('good')").await, false);
        sign_in("may-not").await;
        browser.until(&format!("{error} === 'Authorization denied for user eve'")).await;
        sign_in("may-read").await;
        browser.until(&format!("{NAMES}.includes('good')")).await;
        assert_eq!(browser.eval("document.querySelector('#signin').open").await, false);
        let stored =
            "JSON.stringify([document.cookie, location.href, {...localStorage}, {...sessionStorage}])";
        assert_eq!(browser.eval(&format!("{stored}.includes('may-read')")).await, false);
        // Chromium logs the rejected requests.
        let complaints = browser.console().await;
        assert!(
            complaints.iter().all(|line| line.contains("401") || line.contains("403")),
            "{complaints:#?}"
        );
    })
    .await;
    world.end().await
}
