//! The development loop: from saving a file to the new reconciler's status in the cluster.
//!
//! `kubewright dev` runs on a built project. Each save changes the status message of the reconciler. The
//! measurement ends when a watch delivers that status. cargo's reported build time is subtracted in a
//! separate row.

use std::io::{BufRead as _, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use futures_util::{StreamExt as _, TryStreamExt as _};
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, WatchEvent, WatchParams};
use kubewright_runtime::connect;

use super::scaffold::Project;
use crate::row::{Rows, Unit};
use crate::suites::Bench;

const OWN_MS: f64 = 300.0;
/// The status message of the scaffolded reconciler.
const MESSAGE: &str = "Reconciled successfully";
const SAMPLE: &str = "widget-sample";
/// Timeout of each step.
const PATIENCE: Duration = Duration::from_mins(10);

pub(super) fn run(bench: &Bench, kubewright: &Path, project: &Project, rows: &mut Rows) -> Result<()> {
    bench.progress.say("dev: starting `kubewright dev`");
    let mut dev = Dev::start(kubewright, project)?;
    dev.until(" ready the operator is running")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let kubeconfig = connect::Source { kubeconfig: Some(project.kept("kubeconfig")), context: None };
    let client = runtime.block_on(async {
        let config = connect::infer(&kubeconfig).await?;
        anyhow::Ok(connect::client(config, connect::Options::default())?)
    })?;
    let mut before = MESSAGE.to_owned();
    for round in 1..=bench.rounds {
        bench.progress.say(&format!("dev: save, round {round} of {}", bench.rounds));
        let message = format!("{MESSAGE}, {round}");
        let saved = Instant::now();
        project.change_reconciler(&before, &message)?;
        runtime.block_on(status(&client, &message))?;
        let total = saved.elapsed().as_secs_f64();
        let cargo = finished(&dev.until(" Finished ")?)?;
        dev.until(" rebuilt in ")?;
        rows.sample("save to reconciled", Unit::Seconds, total);
        let own = "save to reconciled, without cargo's build time";
        rows.sample(own, Unit::Millis, (total - cargo).max(0.0)).target = Some(OWN_MS);
        before = message;
    }
    dev.end()
}

/// Waits until the status of the sample contains `text`.
async fn status(client: &kube::Client, text: &str) -> Result<()> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("bench.example.com", "v1", "Widget"));
    let api: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), &kind);
    let params = WatchParams::default().fields(&format!("metadata.name={SAMPLE}"));
    let wait = async {
        let mut events = api.watch(&params, "0").await?.boxed();
        while let Some(event) = events.try_next().await? {
            if let WatchEvent::Added(object) | WatchEvent::Modified(object) = event
                && object.data["status"]["conditions"][0]["message"] == text
            {
                return Ok(());
            }
        }
        bail!("the watch ended before the status contained {text:?}")
    };
    tokio::time::timeout(PATIENCE, wait)
        .await
        .context("timed out waiting for the status of the new reconciler")?
}

/// The build time in seconds from ``Finished `dev` profile [...] target(s) in 2.10s``.
fn finished(line: &str) -> Result<f64> {
    let (_, took) = line.rsplit_once(" in ").with_context(|| format!("no build time in {line:?}"))?;
    let mut seconds = 0.0;
    for part in took.split_whitespace() {
        let (number, unit) =
            part.split_at(part.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(part.len()));
        let number: f64 = number.parse().with_context(|| format!("parse the build time {took:?}"))?;
        seconds += if unit == "m" { number * 60.0 } else { number };
    }
    Ok(seconds)
}

/// A running `kubewright dev`. Terminated on drop.
struct Dev {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl Dev {
    fn start(kubewright: &Path, project: &Project) -> Result<Self> {
        let mut command = project.command(kubewright);
        command.args(["dev", "--color", "never"]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().context("start `kubewright dev`")?;
        let (sender, lines) = mpsc::channel();
        forward(child.stdout.take(), sender.clone());
        forward(child.stderr.take(), sender);
        Ok(Self { child, lines })
    }

    /// Returns the next line that contains `text`.
    fn until(&mut self, text: &str) -> Result<String> {
        let mut last = String::new();
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(line) = self.lines.recv_timeout(left) else {
                bail!("`kubewright dev` ended without printing {text:?}; its last line was {last:?}");
            };
            if line.contains(text) {
                return Ok(line);
            }
            last = line;
        }
    }

    fn terminate(&mut self) -> Result<()> {
        Command::new("kill").arg("-TERM").arg(self.child.id().to_string()).status().context("start kill")?;
        self.child.wait().context("wait for `kubewright dev`")?;
        Ok(())
    }

    fn end(mut self) -> Result<()> {
        self.terminate()
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            // SIGTERM also stops its child processes, unlike SIGKILL.
            let _ = self.terminate();
        }
    }
}

fn forward(pipe: Option<impl Read + Send + 'static>, lines: mpsc::Sender<String>) {
    let Some(pipe) = pipe else { return };
    thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            if lines.send(line).is_err() {
                return;
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargos_build_time_is_parsed() {
        let line = "    Finished `dev` profile [unoptimized + debuginfo] target(s) in";
        assert!((finished(&format!("{line} 2.10s")).unwrap() - 2.1).abs() < 1e-9);
        assert!((finished(&format!("{line} 1m 02s")).unwrap() - 62.0).abs() < 1e-9);
        assert!(finished("Finished").is_err());
    }
}
