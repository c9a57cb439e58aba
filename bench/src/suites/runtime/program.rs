//! An operator as a process: the size of its binary and its memory.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;

use crate::{binary, process};

/// How long memory must stay constant before it is read, and the maximum number of attempts.
const STILL: Duration = Duration::from_millis(200);
const LOOKS: u32 = 25;

/// The stripped binary of an operator.
#[derive(Debug)]
pub(super) struct Binary(PathBuf);

impl Binary {
    /// Builds the operator with the scaffold's release profile, stripped.
    pub(super) fn build(package: &str) -> Result<Self> {
        let linked = "profile.release.lto=\"thin\"".to_owned();
        let stripped = format!("profile.release.package.{package}.strip=\"symbols\"");
        binary::build(package, package, &[linked, stripped]).map(Self)
    }

    /// Size in bytes.
    pub(super) fn size(&self) -> Result<f64> {
        let file = fs::metadata(&self.0).with_context(|| format!("read {}", self.0.display()))?;
        bytes(file.len())
    }

    /// Starts the operator and waits until it has reconciled `objects` objects.
    pub(super) fn start(&self, kubeconfig: &Path, kind: &str, objects: usize) -> Result<Program> {
        let folder = tempfile::tempdir().context("create a directory for the log")?;
        let log = folder.path().join("log");
        let mut command = Command::new(&self.0);
        command.arg(kind).arg(objects.to_string()).env("KUBECONFIG", kubeconfig).env_remove("RUST_LOG");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(File::create(&log)?);
        let started = Instant::now();
        let mut child = command.spawn().with_context(|| format!("start {}", self.0.display()))?;
        let stdout = child.stdout.take();
        // From here on the process is killed on drop.
        let mut program = Program { child, ready_after: Duration::ZERO, _folder: folder };
        let mut line = String::new();
        BufReader::new(stdout.context("standard output is not piped")?).read_line(&mut line)?;
        program.ready_after = started.elapsed();
        ensure!(
            line.trim_end() == "ready",
            "{} did not start; its output was\n{}",
            self.0.display(),
            fs::read_to_string(&log).unwrap_or_default()
        );
        Ok(program)
    }
}

/// A running operator. Killed on drop.
#[derive(Debug)]
pub(super) struct Program {
    child: Child,
    ready_after: Duration,
    _folder: TempDir,
}

impl Program {
    /// Time from before the process was started until every object was reconciled.
    pub(super) fn ready_after(&self) -> Duration {
        self.ready_after
    }

    /// CPU time so far.
    pub(super) fn cpu_time(&self) -> Result<Duration> {
        process::cpu_time(self.child.id())
    }

    /// Resident memory in bytes, after it has become constant.
    pub(super) fn memory(&self) -> Result<f64> {
        let mut last = process::resident_memory(self.child.id())?;
        for _ in 0..LOOKS {
            std::thread::sleep(STILL);
            let now = process::resident_memory(self.child.id())?;
            if now == last {
                break;
            }
            last = now;
        }
        bytes(last)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // The process may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn bytes(count: u64) -> Result<f64> {
    Ok(f64::from(u32::try_from(count / 1024).context("size exceeds 4 TiB")?) * 1024.0)
}
