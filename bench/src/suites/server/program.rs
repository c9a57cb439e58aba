//! The server as a program of its own: `kubewright apiserver`.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;

use super::endpoint::Endpoint;
use super::objects::{self, Kind};
use super::tls::Connection;
use crate::{binary, process};

/// The binary `kubewright`, built in release.
#[derive(Debug)]
pub(super) struct Binary(PathBuf);

impl Binary {
    pub(super) fn build() -> Result<Self> {
        binary::build("kubewright-cli", "kubewright", &[]).map(Self)
    }
}

/// A running server. It is killed when this is dropped.
#[derive(Debug)]
pub(super) struct Program {
    child: Child,
    ready_after: Duration,
    folder: TempDir,
}

impl Program {
    /// Starts one and waits until it says that it is ready.
    pub(super) fn start(binary: &Binary) -> Result<Self> {
        let folder = tempfile::tempdir().context("cannot make a folder for the kubeconfig")?;
        let mut command = Command::new(&binary.0);
        command
            .args(["apiserver", "--quiet", "--port", "0", "--kubeconfig"])
            .arg(folder.path().join(KUBECONFIG));
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let started = Instant::now();
        let mut child = command.spawn().with_context(|| format!("cannot start {}", binary.0.display()))?;
        let stdout = child.stdout.take();
        // From here on it is killed whatever happens.
        let mut program = Self { child, ready_after: Duration::ZERO, folder };
        let mut line = String::new();
        BufReader::new(stdout.context("standard output is piped")?).read_line(&mut line)?;
        program.ready_after = started.elapsed();
        ensure!(line.starts_with("ready "), "the server did not start; what it said stands above");
        Ok(program)
    }

    /// From before the process was there to its ready line.
    pub(super) fn ready_after(&self) -> Duration {
        self.ready_after
    }

    pub(super) async fn connect(&self) -> Result<Connection> {
        let path = self.folder.path().join(KUBECONFIG);
        let kubeconfig =
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Connection::open(&kubeconfig).await
    }

    /// Resident memory, in bytes.
    pub(super) fn memory(&self) -> Result<f64> {
        let bytes = process::resident_memory(self.child.id())?;
        Ok(f64::from(u32::try_from(bytes / 1024).context("terabytes of memory")?) * 1024.0)
    }

    /// Resident memory once a client has connected and seen something: nobody keeps a server that none did.
    pub(super) async fn idle_memory(&self) -> Result<f64> {
        let endpoint = Endpoint::Tls(self.connect().await?);
        endpoint.call(objects::list(endpoint.base(), Kind::ConfigMap)).await?;
        self.memory()
    }

    pub(super) fn cpu_time(&self) -> Result<Duration> {
        process::cpu_time(self.child.id())
    }
}

const KUBECONFIG: &str = "kubeconfig";

impl Drop for Program {
    fn drop(&mut self) {
        // Already gone is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
