//! The operator as a process.
//!
//! All waits have a timeout, whose error contains the log.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStderr, Command};

use crate::cluster::account;

/// Timeout of every wait.
const LIMIT: Duration = Duration::from_mins(1);

/// Environment variables as `(name, value)`.
pub(crate) type Environment<'a> = &'a [(&'a str, &'a str)];

/// A running operator. Killed on drop.
pub(crate) struct Program {
    child: Child,
    lines: Lines<BufReader<ChildStderr>>,
    log: Vec<String>,
}

/// The result of an operator process.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: Option<i32>,
    pub(crate) stdout: String,
    /// All lines on standard error.
    pub(crate) log: Vec<String>,
}

impl Program {
    /// Starts the operator on a cluster as its ServiceAccount, with free ports for probes and metrics.
    pub(crate) fn on(kubeconfig: &Path, arguments: &[&str], environment: Environment<'_>) -> Result<Self> {
        let kubeconfig = format!("--kubeconfig={}", kubeconfig.display());
        let usual = [&*kubeconfig, "--health-probe-bind-address=127.0.0.1:0"];
        let user = account().user();
        let environment = [environment, &[("KUBEWRIGHT_IMPERSONATE", &*user)]].concat();
        Self::start(&[&usual, arguments].concat(), &environment)
    }

    /// Starts the operator with these arguments and only these environment variables.
    pub(crate) fn start(arguments: &[&str], environment: Environment<'_>) -> Result<Self> {
        let mut child = Command::new(env!("CARGO_BIN_EXE_config-map-labeller"))
            .args(arguments)
            .env_clear()
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let stderr = child.stderr.take().context("standard error is not piped")?;
        Ok(Self { child, lines: BufReader::new(stderr).lines(), log: Vec::new() })
    }

    /// Waits for a log line with this message.
    pub(crate) async fn logs(&mut self, message: &str) -> Result<Value> {
        loop {
            let Ok(line) = tokio::time::timeout(LIMIT, self.lines.next_line()).await else {
                bail!("{message:?} was not logged; the log: {:#?}", self.log);
            };
            let Some(line) = line? else {
                bail!("the operator exited before it logged {message:?}; the log: {:#?}", self.log);
            };
            let fields: Value = serde_json::from_str(&line).with_context(|| format!("not JSON: {line}"))?;
            self.log.push(line);
            if fields["msg"] == message {
                return Ok(fields);
            }
        }
    }

    /// The address in the log line with this message.
    pub(crate) async fn address(&mut self, message: &str) -> Result<SocketAddr> {
        let line = self.logs(message).await?;
        Ok(line["address"].as_str().context("no address in the log line")?.parse()?)
    }

    pub(crate) fn signal(&self, signal: Signal) -> Result<()> {
        let id = self.child.id().context("the operator has exited")?;
        let pid = Pid::from_raw(i32::try_from(id)?).context("invalid process ID")?;
        Ok(kill_process(pid, signal)?)
    }

    /// Waits for the process to exit.
    pub(crate) async fn end(mut self) -> Result<Ended> {
        let rest = async {
            while let Some(line) = self.lines.next_line().await? {
                self.log.push(line);
            }
            let mut stdout = String::new();
            if let Some(mut pipe) = self.child.stdout.take() {
                pipe.read_to_string(&mut stdout).await?;
            }
            anyhow::Ok((self.child.wait().await?.code(), stdout))
        };
        let Ok(ended) = tokio::time::timeout(LIMIT, rest).await else {
            bail!("the operator did not exit; the log: {:#?}", self.log);
        };
        let (status, stdout) = ended?;
        Ok(Ended { status, stdout, log: self.log })
    }
}

impl Ended {
    pub(crate) fn last(&self) -> &str {
        self.log.last().map_or("", String::as_str)
    }

    pub(crate) fn succeeded(&self) -> Result<()> {
        ensure!(self.status == Some(0), "{self:#?}");
        Ok(())
    }

    /// The error in the last log line of a failed operator.
    pub(crate) fn error(&self) -> Result<String> {
        ensure!(self.status == Some(1), "{self:#?}");
        let line: Value = serde_json::from_str(self.last()).with_context(|| format!("{self:#?}"))?;
        ensure!(line["level"] == "error" && line["msg"] == "Failed to run operator", "{line}");
        Ok(line["error"].as_str().context("no error in the log line")?.to_owned())
    }
}

/// Sends a GET request and returns status and body.
pub(crate) async fn get(address: SocketAddr, path: &str) -> Result<(u16, String)> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let status = answer.split(' ').nth(1).context("no status in the response")?.parse()?;
    let (_, body) = answer.split_once("\r\n\r\n").context("no headers in the response")?;
    Ok((status, body.to_owned()))
}
