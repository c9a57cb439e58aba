//! A project from the scaffold: made, built, and built again after a change of its reconciler.
//!
//! Builds are debug builds, as in daily work, into a folder of their own: the first one compiles every dependency. It
//! takes minutes, so there is one in a run and not one in each round. No network is asked: versions are those of this
//! workspace, which are on the disk.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;

use super::Bench;
use crate::row::{Rows, Unit};

const MADE_MS: f64 = 200.0;
const AGAIN_S: f64 = 3.0;
/// Making a project is short: so many of them in each round.
const REPEATS: usize = 5;

/// The same project without the settings of its profile.
const PEER: &str = "cargo's profile";
const NAME: &str = "bench";
const RECONCILER: &str = "src/controllers/widget.rs";
const LOGGED: &str = "\"reconciling";

/// Hands on a project that is built.
pub(super) fn run(bench: &Bench, kubewright: &Path, rows: &mut Rows) -> Result<Project> {
    let project = Project::make(kubewright)?;
    let plain = Project::make(kubewright)?;
    plain.have_cargos_profile()?;
    bench.progress.say("dev: the first build of a project, which takes minutes");
    let ours = project.build()?;
    bench.progress.say("dev: the same with cargo's own profile");
    let name = "cold debug build of a new project";
    rows.sample_beside(name, Unit::Seconds, ours, (PEER, plain.build()?));
    for round in 1..=bench.rounds {
        bench.progress.say(&format!("dev: a project, round {round} of {}", bench.rounds));
        for _ in 0..REPEATS {
            let made = Project::make(kubewright)?.took;
            rows.sample("init + create api", Unit::Millis, made).target = Some(MADE_MS);
        }
        for project in [&project, &plain] {
            project.change_reconciler(LOGGED, &format!("{LOGGED}, round {round}"))?;
        }
        let name = "debug build after a change of the reconciler";
        let (ours, peer) = (project.build()?, plain.build()?);
        rows.sample_beside(name, Unit::Seconds, ours, (PEER, peer)).target = Some(AGAIN_S);
        rows.sample("manifests --check of what is built", Unit::Millis, project.manifests(kubewright)?);
    }
    Ok(project)
}

/// A project with a kind, and a folder for what is built of it.
pub(super) struct Project {
    root: TempDir,
    target: TempDir,
    /// Seconds that it took to make it.
    took: f64,
}

impl Project {
    fn make(kubewright: &Path) -> Result<Self> {
        let folder = || tempfile::tempdir().context("cannot make a folder");
        let mut made = Self { root: folder()?, target: folder()?, took: 0.0 };
        let init = format!("init --quiet --domain example.com --project-name {NAME}");
        let api = "create api --quiet --group bench --version v1 --kind Widget";
        for line in [&*init, api] {
            made.took += seconds(made.command(kubewright).args(line.split(' ')))?;
        }
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.lock");
        fs::copy(workspace, made.root.path().join("Cargo.lock")).context("cannot copy Cargo.lock")?;
        Ok(made)
    }

    /// A program that is started in the project.
    pub(super) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.root.path())
            .env("CARGO_TARGET_DIR", self.target.path())
            .env("CARGO_NET_OFFLINE", "true")
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command
    }

    /// Builds it, and says how many seconds that took.
    fn build(&self) -> Result<f64> {
        let cargo = PathBuf::from(env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")));
        seconds(self.command(&cargo).args(["build", "--quiet"]))
    }

    fn manifests(&self, kubewright: &Path) -> Result<f64> {
        seconds(self.command(kubewright).args(["manifests", "--check", "--quiet"]))
    }

    /// Takes away what the scaffold says of debug builds.
    fn have_cargos_profile(&self) -> Result<()> {
        let path = self.root.path().join("Cargo.toml");
        let text = fs::read_to_string(&path).context("cannot read Cargo.toml")?;
        let sections = text.split_inclusive("\n\n").filter(|section| !section.contains("[profile.dev"));
        let changed: String = sections.collect();
        ensure!(changed != text, "there is no profile for debug builds in Cargo.toml");
        fs::write(&path, changed).context("cannot write Cargo.toml")
    }

    /// Where the development loop keeps something.
    pub(super) fn kept(&self, name: &str) -> PathBuf {
        self.target.path().join("kubewright/dev").join(NAME).join(name)
    }

    /// Changes what the reconciler does, as someone who saves the file.
    pub(super) fn change_reconciler(&self, from: &str, to: &str) -> Result<()> {
        let path = self.root.path().join(RECONCILER);
        let text = fs::read_to_string(&path).context("cannot read the reconciler")?;
        ensure!(text.contains(from), "there is no {from} in the reconciler");
        fs::write(&path, text.replacen(from, to, 1)).context("cannot write the reconciler")
    }
}

/// Runs a program to its end; it must succeed.
fn seconds(command: &mut Command) -> Result<f64> {
    let started = Instant::now();
    let status = command.status().with_context(|| format!("cannot start {command:?}"))?;
    let took = started.elapsed().as_secs_f64();
    ensure!(status.success(), "{command:?} failed ({status}); what went wrong stands above");
    Ok(took)
}
