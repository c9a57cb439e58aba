//! The page of `kubewright dev` in Chromium, with 10,000 objects.
//!
//! `dev` runs on a package that is not an operator: the cluster and the page run without one. Times are those of the
//! browser: from the start of the navigation, and of the frame callbacks that update the page.

#[expect(dead_code, reason = "the tests of the page use all of it")]
#[path = "../../../crates/kubewright-page/tests/it/driver.rs"]
mod driver;

use std::cell::Cell;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::ConfigMap;
use kubewright_runtime::{Client, Patch, connect};
use serde_json::json;
use tempfile::TempDir;

use self::driver::{Browser, browse};
use super::{Bench, Suite};
use crate::binary;
use crate::row::{Row, Rows, Unit};

pub(crate) const SUITE: Suite = Suite { name: "page", run };

const OBJECTS: usize = 10_000;
/// Updates per round.
const UPDATES: usize = 50;
/// Most updates fit into a frame.
const FRAME_MS: f64 = 16.0;
const PAINT_MS: f64 = 500.0;

/// Records how long each frame callback takes.
const TIMED: &str = "
    window.took = [];
    const original = window.requestAnimationFrame.bind(window);
    window.requestAnimationFrame = (callback) => original((at) => {
        const start = performance.now();
        callback(at);
        window.took.push(performance.now() - start);
    });";

fn run(bench: &Bench) -> Result<Vec<Row>> {
    bench.progress.say("page: building kubewright");
    let kubewright = binary::build("kubewright-cli", "kubewright", &[])?;
    let dev = Dev::start(&kubewright)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut rows = Rows::default();
    runtime.block_on(async {
        let source = connect::Source {
            kubeconfig: Some(dev.folder.path().join("target/kubewright/dev/idle/kubeconfig")),
            context: None,
        };
        let config = connect::infer(&source).await?;
        let client = Client::new(connect::client(config, connect::Options::default())?);
        bench.progress.say(&format!("page: creating {OBJECTS} objects"));
        for number in 0..OBJECTS {
            client.create(&config_map(number)?).await?;
        }
        for round in 1..=bench.rounds {
            browse(1440, 900, async |browser: &Browser| {
                let stage = |what: &str| {
                    bench.progress.say(&format!("page: round {round} of {}, {what}", bench.rounds));
                };
                measure(browser, &dev.url, &client, round, &mut rows, &stage).await;
            })
            .await;
        }
        anyhow::Ok(())
    })?;
    Ok(rows.into_vec())
}

async fn measure(
    browser: &Browser,
    url: &str,
    client: &Client,
    round: u32,
    rows: &mut Rows,
    stage: &impl Fn(&str),
) {
    stage("list");
    browser.before_load(TIMED).await;
    browser.open(url).await;
    let shown = format!("Number.parseInt(document.querySelector('#objects-count').textContent) >= {OBJECTS}");
    browser.until(&format!("{shown} && (window.listed ??= performance.now())")).await;
    let seconds = |millis: serde_json::Value| millis.as_f64().unwrap_or(f64::NAN) / 1000.0;
    let paint = "performance.getEntriesByName('first-contentful-paint')[0].startTime";
    rows.sample("10,000 objects: first contentful paint", Unit::Millis, seconds(browser.eval(paint).await))
        .target = Some(PAINT_MS);
    rows.sample("10,000 objects: all listed", Unit::Millis, seconds(browser.eval("window.listed").await));
    rows.sample(
        "10,000 objects: longest frame callback while listing",
        Unit::Millis,
        seconds(browser.eval("Math.max(...window.took)").await),
    );

    let changes = Cell::new(0);
    let update = async |number: usize| {
        // An update that changes nothing has no event.
        changes.set(changes.get() + 1);
        let patch = Patch::merge(json!({ "data": { "change": format!("{round}-{}", changes.get()) } }));
        client.patch(&config_map(number * 7)?, &patch).await?;
        anyhow::Ok(())
    };
    stage("updates");
    let (median, longest) = frames(browser, update).await;
    rows.sample("10,000 objects: update of one object", Unit::Millis, median).target = Some(FRAME_MS);
    rows.sample("10,000 objects: longest update", Unit::Millis, longest);

    let create_or_delete = async |number: usize| {
        let map = config_map(5 * OBJECTS + number / 2)?;
        if number.is_multiple_of(2) {
            client.create(&map).await?;
        } else {
            client.delete(&map).await?;
        }
        anyhow::Ok(())
    };
    stage("creates and deletes");
    let (median, _) = frames(browser, create_or_delete).await;
    rows.sample("10,000 objects: create or delete of one object", Unit::Millis, median).target =
        Some(FRAME_MS);

    let filter = "(() => { const filter = document.querySelector('#filter'); filter.value = 'map-';
        return filter.dispatchEvent(new Event('input')); })()";
    stage("filter");
    browser.eval(filter).await;
    browser.until("document.querySelector('#objects-count').textContent.includes(' of ')").await;
    let (median, _) = frames(browser, update).await;
    rows.sample("10,000 objects: update of one object, filtered", Unit::Millis, median).target =
        Some(FRAME_MS);
}

/// Makes changes, each in its own frame. Returns the median and the longest time of the frame callbacks.
async fn frames(browser: &Browser, change: impl AsyncFn(usize) -> Result<()>) -> (f64, f64) {
    browser.eval("(window.took = [])").await;
    for number in 0..UPDATES {
        change(number).await.expect("the server accepts the change");
        browser.until(&format!("window.took.length > {number}")).await;
    }
    let sorted = "window.took.sort((a, b) => a - b)";
    let seconds = |millis: serde_json::Value| millis.as_f64().unwrap_or(f64::NAN) / 1000.0;
    let median = browser.eval(&format!("{sorted}[Math.floor(window.took.length / 2)]")).await;
    let longest = browser.eval(&format!("{sorted}.at(-1)")).await;
    (seconds(median), seconds(longest))
}

fn config_map(number: usize) -> Result<ConfigMap> {
    let map = json!({
        "metadata": { "name": format!("map-{number:05}"), "namespace": "default" },
        "data": { "number": number.to_string() },
    });
    Ok(serde_json::from_value(map)?)
}

/// A running `kubewright dev`. Terminated on drop.
struct Dev {
    child: Child,
    url: String,
    folder: TempDir,
}

impl Dev {
    fn start(kubewright: &Path) -> Result<Self> {
        let folder = tempfile::tempdir().context("create a directory")?;
        let write = |path: &str, text: &str| fs::write(folder.path().join(path), text);
        fs::create_dir(folder.path().join("src"))?;
        write(
            "Cargo.toml",
            "[package]\nname = \"idle\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\n",
        )?;
        write("src/main.rs", "fn main() {}\n")?;
        let mut command = Command::new(kubewright);
        command
            .args(["dev", "--color", "never", "--fresh"])
            .current_dir(folder.path())
            .env("CARGO_TARGET_DIR", folder.path().join("target"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().context("start `kubewright dev`")?;
        let mut lines = BufReader::new(child.stdout.take().context("standard output is not piped")?).lines();
        let url = lines.by_ref().map_while(Result::ok).find_map(|line| {
            line.split_whitespace()
                .last()
                .filter(|word| word.starts_with("http://127.0.0.1:"))
                .map(str::to_owned)
        });
        // Its output must be read, or it blocks.
        std::thread::spawn(move || lines.for_each(drop));
        let mut dev = Self { child, url: String::new(), folder };
        dev.url = url.context("`kubewright dev` did not print the address of the page")?;
        Ok(dev)
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        // SIGTERM also stops its child processes, unlike SIGKILL.
        let _ = Command::new("kill").arg("-TERM").arg(self.child.id().to_string()).status();
        let _ = self.child.wait();
    }
}
