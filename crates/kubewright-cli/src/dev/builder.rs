//! A cancelable build of the operator by cargo.
//!
//! cargo prints to standard error itself. A [`Build`] that is dropped or abandoned leaves no process behind,
//! and the target directory in a state that cargo can continue from.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{ChildStdout, Command};

use super::process_group::Group;
use crate::project::{Programs, Project, not_started};
use crate::ui::Ui;

/// Grace period for cargo and rustc.
const GRACE: Duration = Duration::from_secs(2);

/// How to build an operator.
#[derive(Debug)]
pub(crate) struct Builder {
    pub(crate) project: Project,
    pub(crate) bin: Option<String>,
    /// The arguments of `cargo build` that select the operator.
    pub(crate) selection: Vec<String>,
    pub(crate) arguments: Vec<String>,
    pub(crate) ui: Ui,
}

impl Builder {
    /// Starts a build. The progress bar is disabled if other output goes to the terminal.
    pub(crate) fn start(&self, alone: bool) -> Result<Build> {
        let mut command =
            Command::from(self.project.build_command(&self.selection, &self.arguments, &self.ui));
        if !alone {
            command.env("CARGO_TERM_PROGRESS_WHEN", "never");
        }
        let mut group = Group::spawn(&mut command).map_err(not_started)?;
        let stdout = group.child().stdout.take().context("cargo has no standard output")?;
        Ok(Build {
            group,
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
        if !status.success() {
            return Ok(Built { program: None, took });
        }
        let program = std::mem::take(&mut self.programs).operator(&self.project)?;
        Ok(Built { program: Some(program), took })
    }

    /// Stops the build.
    pub(crate) async fn abandon(mut self) -> Result<()> {
        self.group.end(GRACE).await.context("failed to stop cargo")?;
        Ok(())
    }
}
