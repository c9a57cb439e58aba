//! A running `kubewright dev`, and the status that its operator writes.

use std::io::{BufRead as _, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use futures_util::{StreamExt as _, TryStreamExt as _};
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, WatchEvent, WatchParams};
use kubewright_runtime::connect;

/// Timeout of each step.
const PATIENCE: Duration = Duration::from_mins(10);

/// A running `kubewright dev`. Terminated on drop.
pub(super) struct Dev {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl Dev {
    /// Starts a command that runs `kubewright dev`.
    pub(super) fn start(mut command: Command) -> Result<Self> {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("start {command:?}"))?;
        let (sender, lines) = mpsc::channel();
        forward(child.stdout.take(), sender.clone());
        forward(child.stderr.take(), sender);
        Ok(Self { child, lines })
    }

    /// Returns the next line that contains `text`.
    pub(super) fn until(&mut self, text: &str) -> Result<String> {
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

    pub(super) fn end(mut self) -> Result<()> {
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

/// The sample of a project, in the cluster of its `dev`.
pub(super) struct Sample {
    runtime: tokio::runtime::Runtime,
    api: Api<DynamicObject>,
    name: &'static str,
}

impl Sample {
    pub(super) fn connect(kubeconfig: PathBuf, kind: &GroupVersionKind, name: &'static str) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let source = connect::Source { kubeconfig: Some(kubeconfig), context: None };
        let client = runtime.block_on(async {
            let config = connect::infer(&source).await?;
            anyhow::Ok(connect::client(config, connect::Options::default())?)
        })?;
        let api = Api::default_namespaced_with(client, &ApiResource::from_gvk(kind));
        Ok(Self { runtime, api, name })
    }

    /// Waits until the message of a condition contains `text`. A change of the CRD ends the watch.
    pub(super) fn wait_for(&self, text: &str) -> Result<()> {
        let params = WatchParams::default().fields(&format!("metadata.name={}", self.name));
        let wait = async {
            loop {
                let mut events = self.api.watch(&params, "0").await?.boxed();
                while let Some(event) = events.try_next().await? {
                    if let WatchEvent::Added(object) | WatchEvent::Modified(object) = event
                        && has_message(&object, text)
                    {
                        return Ok(());
                    }
                }
            }
        };
        self.runtime.block_on(async {
            tokio::time::timeout(PATIENCE, wait)
                .await
                .context("timed out waiting for the status of the new reconciler")?
        })
    }
}

fn has_message(object: &DynamicObject, text: &str) -> bool {
    let conditions = object.data["status"]["conditions"].as_array();
    let mut messages = conditions.into_iter().flatten().filter_map(|condition| condition["message"].as_str());
    messages.any(|message| message.contains(text))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_message_of_any_condition_counts() {
        let mut object = DynamicObject::new("a", &ApiResource::erase::<k8s_openapi::api::core::v1::Pod>(&()));
        assert!(!has_message(&object, "round 2"));
        object.data =
            json!({ "status": { "conditions": [{ "message": "x" }, { "message": "ready, round 2" }] } });
        assert!(has_message(&object, "round 2") && !has_message(&object, "round 3"));
    }
}
