//! A cancelable build of the operator by cargo.
//!
//! cargo's standard error is forwarded ([`build_output`](super::build_output)). A [`Build`] that is dropped or abandoned
//! leaves no process behind, and the target directory in a state that cargo can continue from.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{ChildStdout, Command};
use tokio::task::JoinHandle;

use super::build_output::{FirstError, LockAdvice, Output};
use super::page::Feed;
use super::process_group::Group;
use crate::project::{Programs, Project, not_started};
use crate::ui::Ui;

/// Grace period for cargo and rustc.
const GRACE: Duration = Duration::from_secs(2);
/// How long to wait for the last output after exit.
const DRAIN: Duration = Duration::from_secs(2);

/// How to build an operator.
#[derive(Debug)]
pub(crate) struct Builder {
    pub(crate) project: Project,
    /// The package of the operator.
    pub(crate) package: String,
    pub(crate) bin: Option<String>,
    /// The arguments of `cargo build` that select the operator.
    pub(crate) selection: Vec<String>,
    pub(crate) arguments: Vec<String>,
    pub(super) lock_advice: LockAdvice,
    pub(crate) ui: Ui,
    /// Gets the progress.
    pub(crate) feed: Feed,
}

impl Builder {
    /// Starts a build. The progress bar is hidden if other output goes to the terminal.
    pub(crate) fn start(&self, alone: bool) -> Result<Build> {
        let mut command =
            Command::from(self.project.build_command(&self.selection, &self.arguments, &self.ui));
        let output =
            Output::prepare(&mut command, alone, self.lock_advice.clone(), &self.ui, self.feed.clone());
        let first_error = output.first_error();
        let mut group = Group::spawn(&mut command).map_err(not_started)?;
        let stdout = group.child().stdout.take().context("cargo has no standard output")?;
        let stderr = group.child().stderr.take().context("cargo has no standard error")?;
        Ok(Build {
            group,
            forwarded: Some(tokio::spawn(output.forward(stderr))),
            first_error,
            lines: Some(BufReader::new(stdout).lines()),
            programs: Programs::default(),
            project: self.project.clone(),
            started: Instant::now(),
        })
    }
}

/// A running build.
#[derive(Debug)]
pub(crate) struct Build {
    group: Group,
    /// Forwards standard error.
    forwarded: Option<JoinHandle<()>>,
    first_error: FirstError,
    lines: Option<Lines<BufReader<ChildStdout>>>,
    programs: Programs,
    project: Project,
    started: Instant,
}

/// The result of a build.
#[derive(Debug)]
pub(crate) struct Built {
    /// The operator binary, or `None` if the build failed; cargo has printed the errors.
    pub(crate) program: Option<PathBuf>,
    /// The first error of a failed build.
    pub(crate) error: String,
    pub(crate) took: Duration,
}

impl Build {
    /// Waits for the build. Cancel-safe.
    pub(crate) async fn finish(&mut self) -> Result<Built> {
        while let Some(lines) = &mut self.lines {
            match lines.next_line().await.context("cannot read the output of cargo")? {
                Some(line) => self.programs.read(&line),
                None => self.lines = None,
            }
        }
        let status = self.group.wait().await.context("cannot wait for cargo")?;
        let took = self.started.elapsed();
        if let Some(forwarded) = &mut self.forwarded {
            // A descendant that left the process group may hold the pipe open.
            if tokio::time::timeout(DRAIN, &mut *forwarded).await.is_err() {
                forwarded.abort();
            }
            self.forwarded = None;
        }
        if !status.success() {
            return Ok(Built { program: None, error: self.first_error.text(), took });
        }
        let program = std::mem::take(&mut self.programs).operator(&self.project)?;
        Ok(Built { program: Some(program), error: String::new(), took })
    }

    /// Stops the build.
    pub(crate) async fn abandon(mut self) -> Result<()> {
        self.group.end(GRACE).await.context("failed to stop cargo")?;
        Ok(())
    }
}
