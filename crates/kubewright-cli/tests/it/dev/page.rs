//! The page of `kubewright dev` with a real operator, in Chromium.
//!
//! With `KUBEWRIGHT_PICTURES` set to a directory, the pictures of the documentation are written there
//! (`cargo xtask screenshots`).

use std::path::{Path, PathBuf};

use super::driver::{Browser, browse};
use super::running::kubectl;

/// The example's objects, its admission reviews, and the first cause of its reconciles.
pub(crate) fn shows_the_example(url: &str, kubeconfig: &Path) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(browse(1440, 900, async |browser: &Browser| {
        browser.prefer("light").await;
        browser.open(url).await;
        let running = |number: usize| format!("[...document.querySelectorAll('#rows .say')].filter((word) => word.textContent === 'Running').length === {number}");
        browser.until(&running(2)).await;
        browser.until("document.querySelector('#operator').dataset.level === 'good'").await;
        browser.until("document.querySelector('#build .say').textContent.startsWith('Started')").await;
        let patch = r#"patch markdownviews.v1.view.example.com markdownview-sample --type=merge --patch={"spec":{"replicas":2}}"#;
        kubectl(kubeconfig, patch);
        browser.until(&running(3)).await;

        browser.click("#more-reviews").await;
        let reviews = "[...document.querySelectorAll('#review-list .state .say')].map((verdict) => verdict.textContent)";
        for verdict in ["denied 422", "patched", "allowed", "converted"] {
            browser.until(&format!("{reviews}.includes('{verdict}')")).await;
        }
        browser.click("#more-logs").await;
        browser.until("document.querySelector('#log-list .line')").await;

        // A Deployment that became ready is the work of a controller, which goes back to the sample.
        browser.click("#more-events").await;
        let line = "[...document.querySelectorAll('#reconcile-list .line')].find((line) => /status.*readyReplicas/.test(line.textContent))";
        browser.until(&format!("{line} !== undefined")).await;
        browser.eval(&format!("{line}.click()")).await;
        browser.until("document.querySelectorAll('.chain li').length > 2").await;
        let first = browser.eval("document.querySelector('.chain .first').textContent").await;
        let first = first.as_str().unwrap_or_default();
        assert!(first.contains("(user)") && first.contains("MarkdownView default/markdownview"), "{first}");
        browser.until("document.getAnimations().length === 0").await;
        pictures(browser).await;
    }));
}

async fn pictures(browser: &Browser) {
    let Some(folder) = std::env::var_os("KUBEWRIGHT_PICTURES").map(PathBuf::from) else { return };
    browser.eval("document.querySelector('.why-chain').closest('li').scrollIntoView()").await;
    browser.click("#more-reviews").await;
    for (width, theme, name) in [
        (1280, "light", "dev-page-1280-light"),
        (1280, "dark", "dev-page-1280-dark"),
        (1920, "dark", "dev-page-1920-dark"),
        (1920, "light", "dev-page-1920-light"),
        (1440, "light", "dev-page-light"),
    ] {
        browser.resize(width, if width > 1500 { 1080 } else { 900 }).await;
        browser.prefer(theme).await;
        picture(browser, &folder, name).await;
    }
    browser.prefer("dark").await;
    browser.click("#rows .row").await;
    browser.until("document.querySelector('#overview-change [data-mark]')").await;
    picture(browser, &folder, "dev-page-dark").await;
}

async fn picture(browser: &Browser, folder: &Path, name: &str) {
    // The size of the window changes the rows with the next frames.
    for _ in 0..2 {
        browser.eval("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))").await;
    }
    let path = folder.join(format!("{name}.png"));
    std::fs::write(&path, browser.picture().await)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}
