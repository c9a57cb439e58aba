//! The server process, and the requests of these tests.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Read as _};
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
        Self::spawn_with(dir, &["--data-dir".as_ref(), dir.as_os_str()])
    }

    fn spawn_with(dir: &Path, arguments: &[&OsStr]) -> Result<Process> {
        let mut command = command("apiserver");
        command.args(arguments).arg("--kubeconfig").arg(dir.with_extension("kubeconfig"));
        Ok(Process(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?))
    }

    /// Starts the server and waits until it is ready.
    pub(crate) async fn start(dir: &Path) -> Result<Self> {
        Self::ready(dir, Self::spawn(dir)?).await
    }

    /// Starts a server that stores nothing; its kubeconfig is beside `dir`.
    pub(crate) async fn start_in_memory(dir: &Path) -> Result<Self> {
        Self::ready(dir, Self::spawn_with(dir, &[])?).await
    }

    /// Starts the server without controllers: it collects no garbage.
    pub(crate) async fn start_without_controllers(dir: &Path) -> Result<Self> {
        let arguments = ["--data-dir".as_ref(), dir.as_os_str(), "--controllers".as_ref(), "none".as_ref()];
        Self::ready(dir, Self::spawn_with(dir, &arguments)?).await
    }

    /// Starts the server, which must fail, and returns its messages.
    pub(crate) fn rejected(dir: &Path) -> Result<String> {
        let mut command = command("apiserver");
        command.arg("--data-dir").arg(dir).arg("--kubeconfig").arg(dir.with_extension("kubeconfig"));
        let mut process = Process(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?);
        let (stdout, stderr) = (process.0.stdout.take(), process.0.stderr.take());
        let (mut line, mut messages) = (String::new(), String::new());
        BufReader::new(stdout.context("no standard output")?).read_line(&mut line)?;
        if !line.is_empty() {
            bail!("the server has started: {line}");
        }
        stderr.context("no standard error")?.read_to_string(&mut messages)?;
        Ok(messages)
    }

    async fn ready(dir: &Path, mut process: Process) -> Result<Self> {
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

/// Sends a request. With `null`, the request has an empty body.
pub(crate) async fn send(client: &Client, method: Method, path: &str, body: &Value) -> kube::Result<Value> {
    let media = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    let bytes = if body.is_null() { Ok(Vec::new()) } else { serde_json::to_vec(body) };
    let bytes = bytes.map_err(kube::Error::SerdeError)?;
    let request = Request::builder().method(method).uri(path).header(http::header::CONTENT_TYPE, media);
    client.request(request.body(bytes).map_err(kube::Error::HttpError)?).await
}
