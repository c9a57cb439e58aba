//! The development loop: from a save to what the new reconciler has done in the cluster.
//!
//! `kubewright dev` runs on a project that is built. A save changes what the reconciler writes into a status; the clock
//! stops when a watch brings that status. What cargo says that it took is not ours.

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
/// What the reconciler writes into the status of the sample.
const SAID: &str = "Reconciled successfully";
const SAMPLE: &str = "widget-sample";
/// Longer than anything takes.
const PATIENCE: Duration = Duration::from_mins(10);

pub(super) fn run(bench: &Bench, kubewright: &Path, project: &Project, rows: &mut Rows) -> Result<()> {
    bench.progress.say("dev: the loop, first run");
    let mut dev = Dev::start(kubewright, project)?;
    dev.until(" ready the operator runs")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let kubeconfig = connect::Source { kubeconfig: Some(project.kept("kubeconfig")), context: None };
    let client = runtime.block_on(async {
        let config = connect::infer(&kubeconfig).await?;
        anyhow::Ok(connect::client(config, connect::Options::default())?)
    })?;
    let mut before = SAID.to_owned();
    for round in 1..=bench.rounds {
        bench.progress.say(&format!("dev: a save, round {round} of {}", bench.rounds));
        let said = format!("{SAID}, {round}");
        let saved = Instant::now();
        project.change_reconciler(&before, &said)?;
        runtime.block_on(status(&client, &said))?;
        let total = saved.elapsed().as_secs_f64();
        let cargo = finished(&dev.until(" Finished ")?)?;
        dev.until(" rebuilt in ")?;
        rows.sample("save to reconciled", Unit::Seconds, total);
        let own = "save to reconciled, less what cargo says";
        rows.sample(own, Unit::Millis, (total - cargo).max(0.0)).target = Some(OWN_MS);
        before = said;
    }
    dev.end()
}

/// Waits until the sample's status says something.
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
        bail!("the watch ended before the status said {text:?}")
    };
    tokio::time::timeout(PATIENCE, wait).await.context("the new reconciler never wrote its status")?
}

/// Seconds that cargo says it took: the end of ``Finished `dev` profile [...] target(s) in 2.10s``.
fn finished(line: &str) -> Result<f64> {
    let (_, took) =
        line.rsplit_once(" in ").with_context(|| format!("cargo does not say how long: {line}"))?;
    let mut seconds = 0.0;
    for part in took.split_whitespace() {
        let (number, unit) =
            part.split_at(part.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(part.len()));
        let number: f64 = number.parse().with_context(|| format!("cargo took {took:?}"))?;
        seconds += if unit == "m" { number * 60.0 } else { number };
    }
    Ok(seconds)
}

/// A loop that runs. It is ended when this is dropped.
struct Dev {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl Dev {
    fn start(kubewright: &Path, project: &Project) -> Result<Self> {
        let mut command = project.command(kubewright);
        command.args(["dev", "--color", "never"]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().context("cannot start `kubewright dev`")?;
        let (sender, lines) = mpsc::channel();
        forward(child.stdout.take(), sender.clone());
        forward(child.stderr.take(), sender);
        Ok(Self { child, lines })
    }

    /// The next line with a text.
    fn until(&mut self, text: &str) -> Result<String> {
        let mut last = String::new();
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(line) = self.lines.recv_timeout(left) else {
                bail!("`kubewright dev` did not say {text:?}; the last that it said was {last:?}");
            };
            if line.contains(text) {
                return Ok(line);
            }
            last = line;
        }
    }

    fn terminate(&mut self) -> Result<()> {
        Command::new("kill")
            .arg("-TERM")
            .arg(self.child.id().to_string())
            .status()
            .context("cannot start kill")?;
        self.child.wait().context("cannot wait for `kubewright dev`")?;
        Ok(())
    }

    fn end(mut self) -> Result<()> {
        self.terminate()
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            // It ends what it started, which killing it would not.
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
    fn what_cargo_says_of_itself_is_read() {
        let line = "    Finished `dev` profile [unoptimized + debuginfo] target(s) in";
        assert!((finished(&format!("{line} 2.10s")).unwrap() - 2.1).abs() < 1e-9);
        assert!((finished(&format!("{line} 1m 02s")).unwrap() - 62.0).abs() < 1e-9);
        assert!(finished("Finished").is_err());
    }
}
