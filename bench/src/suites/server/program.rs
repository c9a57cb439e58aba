//! The server as a separate process: `kubewright apiserver`.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;

use super::endpoint::Endpoint;
use super::objects::{self, Kind};
use super::tls::Connection;
use crate::{binary, process};

/// The release build of `kubewright`.
#[derive(Debug)]
pub(in crate::suites) struct Binary(PathBuf);

impl Binary {
    pub(in crate::suites) fn build() -> Result<Self> {
        binary::build("kubewright-cli", "kubewright", &[]).map(Self)
    }
}

/// A running server. Killed on drop.
#[derive(Debug)]
pub(in crate::suites) struct Program {
    child: Child,
    ready_after: Duration,
    folder: TempDir,
}

impl Program {
    /// Starts a server and waits for its ready line.
    pub(in crate::suites) fn start(binary: &Binary) -> Result<Self> {
        Self::start_with(binary, false)
    }

    /// As [`Program::start`], with a data directory.
    pub(in crate::suites) fn start_durable(binary: &Binary) -> Result<Self> {
        Self::start_with(binary, true)
    }

    fn start_with(binary: &Binary, durable: bool) -> Result<Self> {
        let folder = tempfile::tempdir().context("create a directory for the kubeconfig")?;
        let mut command = Command::new(&binary.0);
        command
            .args(["apiserver", "--quiet", "--port", "0", "--kubeconfig"])
            .arg(folder.path().join(KUBECONFIG));
        if durable {
            command.arg("--data-dir").arg(folder.path().join("data"));
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let started = Instant::now();
        let mut child = command.spawn().with_context(|| format!("start {}", binary.0.display()))?;
        let stdout = child.stdout.take();
        // From here on the process is killed on drop.
        let mut program = Self { child, ready_after: Duration::ZERO, folder };
        let mut line = String::new();
        BufReader::new(stdout.context("standard output is not piped")?).read_line(&mut line)?;
        program.ready_after = started.elapsed();
        ensure!(line.starts_with("ready "), "the server did not start; see its output above");
        Ok(program)
    }

    /// Time from before the process was started to its ready line.
    pub(in crate::suites) fn ready_after(&self) -> Duration {
        self.ready_after
    }

    pub(in crate::suites) async fn connect(&self) -> Result<Connection> {
        let path = self.folder.path().join(KUBECONFIG);
        let kubeconfig =
            std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        Connection::open(&kubeconfig).await
    }

    /// Resident memory in bytes.
    pub(in crate::suites) fn memory(&self) -> Result<f64> {
        let bytes = process::resident_memory(self.child.id())?;
        Ok(f64::from(u32::try_from(bytes / 1024).context("memory exceeds 4 TiB")?) * 1024.0)
    }

    /// The highest resident memory so far, in bytes.
    pub(in crate::suites) fn peak_memory(&self) -> Result<f64> {
        let bytes = process::peak_memory(self.child.id())?;
        Ok(f64::from(u32::try_from(bytes / 1024).context("memory exceeds 4 TiB")?) * 1024.0)
    }

    /// Resident memory in bytes after one client has connected and listed ConfigMaps.
    pub(in crate::suites) async fn idle_memory(&self) -> Result<f64> {
        let endpoint = Endpoint::Tls(self.connect().await?);
        endpoint.call(objects::list(endpoint.base(), Kind::ConfigMap)).await?;
        self.memory()
    }

    /// How often a small write can be synced in the folder of the data directory.
    pub(in crate::suites) fn syncs_per_second(&self) -> Result<f64> {
        const COUNT: u32 = 200;
        let mut file = File::create(self.folder.path().join("syncs")).context("create a file")?;
        let began = Instant::now();
        for _ in 0..COUNT {
            file.write_all(&[b' '; 1024])?;
            file.sync_data()?;
        }
        Ok(f64::from(COUNT) / began.elapsed().as_secs_f64())
    }

    pub(in crate::suites) fn cpu_time(&self) -> Result<Duration> {
        process::cpu_time(self.child.id())
    }
}

const KUBECONFIG: &str = "kubeconfig";

impl Drop for Program {
    fn drop(&mut self) {
        // The process may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
