//! The server process, and the requests of these tests.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use http::{Method, Request};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};

use super::writer::PATH;
use crate::run::command;

/// Startup timeout.
const DEADLINE: Duration = Duration::from_mins(1);

pub(crate) struct Server {
    process: Process,
    client: Client,
}

/// A process, killed on drop.
pub(crate) struct Process(Child);

impl Process {
    /// Sends SIGKILL.
    pub(crate) fn kill(mut self) -> Result<()> {
        self.0.kill()?;
        self.0.wait()?;
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have been killed already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Server {
    /// Starts the server without waiting.
    pub(crate) fn spawn(dir: &Path) -> Result<Process> {
        let kubeconfig = dir.with_extension("kubeconfig");
        let mut command = command("apiserver");
        command.arg("--data-dir").arg(dir).arg("--kubeconfig").arg(kubeconfig);
        Ok(Process(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?))
    }

    /// Starts the server and waits until it is ready.
    pub(crate) async fn start(dir: &Path) -> Result<Self> {
        let mut process = Self::spawn(dir)?;
        let stdout = process.0.stdout.take().context("no standard output")?;
        let (said, line) = mpsc::channel();
        std::thread::spawn(move || {
            let mut line = String::new();
            // The receiver may be gone.
            let _ = said.send(BufReader::new(stdout).read_line(&mut line).map(|_| line));
        });
        let line = line.recv_timeout(DEADLINE).context("the server is not ready in time")??;
        if !line.starts_with("ready ") {
            bail!("the server did not start: {line:?}");
        }
        let kubeconfig = Kubeconfig::read_from(dir.with_extension("kubeconfig"))?;
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        // Requests are not retried, since the outcome of a failed one is unknown.
        config.default_retry = false;
        Ok(Self { process, client: Client::try_from(config)? })
    }

    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    pub(crate) fn kill(self) -> Result<()> {
        self.process.kill()
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Value> {
        Ok(self.client.request(Request::get(path).body(Vec::new())?).await?)
    }

    /// Creates an object with one value.
    pub(crate) async fn create(&self, name: &str, value: &str) -> Result<Value> {
        let body = json!({"metadata": {"name": name}, "data": {"value": value}});
        send(&self.client, Method::POST, PATH, &body).await.map_err(Into::into)
    }

    /// Creates or updates an object with one value.
    pub(crate) async fn put(&self, name: &str, value: &str) -> Result<Value> {
        let body = json!({"metadata": {"name": name}, "data": {"value": value}});
        match send(&self.client, Method::PUT, &format!("{PATH}/{name}"), &body).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => self.create(name, value).await,
            answer => Ok(answer?),
        }
    }
}

/// Sends a request with a body.
pub(crate) async fn send(client: &Client, method: Method, path: &str, body: &Value) -> kube::Result<Value> {
    let media = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    let bytes = serde_json::to_vec(body).map_err(kube::Error::SerdeError)?;
    let request = Request::builder().method(method).uri(path).header(http::header::CONTENT_TYPE, media);
    client.request(request.body(bytes).map_err(kube::Error::HttpError)?).await
}
