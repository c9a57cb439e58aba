//! The page of `kubewright dev` with a real operator, in Chromium.
//!
//! The pictures of the documentation are taken here, into `KUBEWRIGHT_PICTURES` (`cargo xtask screenshots`) or the
//! directory of temporary files.

use std::path::{Path, PathBuf};
use std::{env, fs};

use super::running::Dev;
use crate::page::driver::{Browser, browse};
use crate::page::layout::{is_readable, settle};
use crate::run;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Widths and heights of the pictures.
const SIZES: [(u32, u32); 3] = [(1280, 800), (1440, 960), (1920, 1080)];

#[test]
fn the_page_shows_the_operator_of_the_readme() {
    let root = Path::new(ROOT).canonicalize().expect("the workspace is there");
    let readme = fs::read_to_string(root.join("README.md")).expect("the workspace has it");
    let arguments = readme.lines().find_map(|line| line.strip_prefix("cargo run -- dev "));
    let arguments = arguments.expect("README has the command");
    // The cluster of the last run has old objects.
    let mut dev = Dev::start(&root, "markdown-view", &format!("--fresh {arguments}"));
    let url = address(&dev.says("page http://127.0.0.1:"));
    dev.says("sample MarkdownView default/markdownview-v2-sample: Available");
    visit(&url, async |browser: &Browser| {
        shows_the_example(browser, &dev).await;
        pictures(browser).await;
    });
    let ended = dev.end("INT");
    assert_eq!(ended.status, Some(0), "{}{}", ended.stdout, ended.stderr);
}

/// The page of an existing cluster: its objects, the operator, and command lines with its kubeconfig.
pub(super) fn shows_an_existing_cluster(url: &str, operator: &str, kubeconfig: &Path) {
    visit(url, async |browser: &Browser| {
        browser.until("document.querySelector('#cluster .say').textContent === 'Connected'").await;
        browser.until(&running(2)).await;
        browser
            .until(&format!("document.querySelector('#operator .say').textContent === '{operator}'"))
            .await;
        // The cluster existed before the operator was built.
        browser.until("document.querySelector('#build .say').textContent.startsWith('Started')").await;
        browser.until("document.querySelectorAll('#reconcile-list > li').length > 1").await;
        browser.click("#more-logs").await;
        browser.until("document.querySelector('#log-list .line')").await;
        open(browser, "MarkdownView", "markdownview-sample").await;
        browser.until("document.querySelectorAll('#overview-reconciles > li').length > 0").await;
        browser.until("document.querySelectorAll('#overview-reviews > li').length > 0").await;
        let line = browser.eval("document.querySelector('#overview-kubectl code').textContent").await;
        let line = line.as_str().unwrap_or_default();
        assert!(line.contains(&kubeconfig.display().to_string()), "{line}");
        assert!(
            line.ends_with(" get markdownview.view.example.com markdownview-sample -n default -o yaml"),
            "{line}"
        );
        is_readable(browser, "existing cluster").await;
    });
}

/// The address in a line of `kubewright dev`.
pub(super) fn address(line: &str) -> String {
    line.split_whitespace().last().expect("the line has the address").to_owned()
}

fn visit(url: &str, test: impl AsyncFnOnce(&Browser)) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(browse(1440, 900, async |browser: &Browser| {
        browser.prefer("light").await;
        browser.open(url).await;
        test(browser).await;
    }));
}

/// The example's objects, its admission reviews, and the first cause of its reconciles.
async fn shows_the_example(browser: &Browser, dev: &Dev) {
    browser.until(&running(2)).await;
    browser.until("document.querySelector('#operator').dataset.level === 'good'").await;
    browser.until("document.querySelector('#build .say').textContent.startsWith('Started')").await;
    let patch = |spec: &str| {
        format!(
            "patch markdownviews.v1.view.example.com markdownview-sample --type=merge --patch={{\"spec\":{spec}}}"
        )
    };
    dev.kubectl(&patch(r#"{"replicas":2,"viewerImage":""}"#));
    browser.until(&running(3)).await;
    let denied = run::run(
        run::kubectl()
            .arg("--kubeconfig")
            .arg(dev.kubeconfig())
            .args(patch(r#"{"replicas":10}"#).split_whitespace()),
    );
    assert!(denied.status == 1 && denied.stderr.contains("must be between 1 and 5"), "{denied}");

    // Without the pointer, which would highlight a row in the pictures.
    browser.eval("document.querySelector('#more-logs').click()").await;
    browser.until("document.querySelector('#log-list .line')").await;
    browser.eval("document.querySelector('#more-reviews').click()").await;
    let reviews =
        "[...document.querySelectorAll('#review-list .state .say')].map((verdict) => verdict.textContent)";
    for verdict in ["denied 422", "patched", "allowed", "converted"] {
        browser.until(&format!("{reviews}.includes('{verdict}')")).await;
    }

    // The status of a Deployment is written by a controller, and leads back to the user who changed the sample.
    let line = "[...document.querySelectorAll('#reconcile-list .line')].find((line) => /status.*readyReplicas/.test(line.textContent))";
    browser.until(&format!("{line} !== undefined")).await;
    browser.eval(&format!("{line}.click()")).await;
    browser.until("document.querySelectorAll('.chain li').length > 2").await;
    let first = browser.eval("document.querySelector('.chain .first').textContent").await;
    let first = first.as_str().unwrap_or_default();
    let expected = "kubectl-patch (user) changed MarkdownView default/markdownview-sample: spec.replicas";
    assert!(first.contains(expected), "{first}");
    browser.until("document.getAnimations().length === 0").await;
}

/// Takes the pictures: at each width the page in one theme, and with an object in the other.
async fn pictures(browser: &Browser) {
    let folder = match env::var_os("KUBEWRIGHT_PICTURES") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_TARGET_TMPDIR")).join("pictures"),
    };
    fs::create_dir_all(&folder).expect("a folder can be made");
    for (size, name) in SIZES.iter().zip(["dev-page-1280", "dev-page", "dev-page-1920"]) {
        browser.resize(size.0, size.1).await;
        browser.eval("document.querySelector('.why-chain').closest('li').scrollIntoView()").await;
        for theme in ["light", "dark"] {
            browser.prefer(theme).await;
            is_readable(browser, &format!("{} px, {theme}", size.0)).await;
            let name = if theme == "dark" && name == "dev-page" { "dev-page-1440" } else { name };
            picture(browser, &folder, &format!("{name}-{theme}"), *size).await;
        }
    }
    let (width, height) = SIZES[1];
    browser.resize(width, height).await;
    open(browser, "MarkdownView", "markdownview-sample").await;
    browser.until("document.querySelector('#overview-change [data-mark]')").await;
    for (theme, name) in [("light", "dev-page-1440-light"), ("dark", "dev-page-dark")] {
        browser.prefer(theme).await;
        is_readable(browser, &format!("{width} px, {theme}, with an object")).await;
        picture(browser, &folder, name, (width, height)).await;
    }
}

/// Writes a picture, and checks that it has the size of the window and is not blank.
async fn picture(browser: &Browser, folder: &Path, name: &str, (width, height): (u32, u32)) {
    settle(browser).await;
    let picture = browser.picture().await;
    assert!(picture.starts_with(b"\x89PNG\r\n\x1a\n"), "{name} is a PNG");
    let number =
        |at: usize| picture[at..at + 4].iter().fold(0, |number, byte| number << 8 | u32::from(*byte));
    assert_eq!((number(16), number(20)), (width, height), "{name}");
    // A page without text takes less than 15 kB.
    assert!(picture.len() > 40_000, "{name} is blank: {} bytes", picture.len());
    let path = folder.join(format!("{name}.png"));
    fs::write(&path, picture).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// Whether a number of Pods runs.
fn running(number: usize) -> String {
    format!(
        "[...document.querySelectorAll('#rows .say')].filter((word) => word.textContent === 'Running').length === {number}"
    )
}

/// Selects an object in the tree.
async fn open(browser: &Browser, kind: &str, name: &str) {
    let row = format!(
        "[...document.querySelectorAll('#rows .name')].find((row) => row.title === '{kind} default/{name}')"
    );
    browser.until(&row).await;
    browser.eval(&format!("{row}.click()")).await;
    browser.until(&format!("document.querySelector('#object-title').textContent.endsWith('{name}')")).await;
}
