//! Scaffolding a project, its first build, and its build after a change of the reconciler.
//!
//! Debug builds with a separate target directory, so the first build compiles every dependency. That takes
//! minutes and is done once per run instead of once per round. Builds are offline and use the dependency
//! versions of this workspace.

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
/// Projects scaffolded per round.
const REPEATS: usize = 5;

/// The same project without the scaffold's `[profile.dev]`.
const PEER: &str = "default profile";
const NAME: &str = "bench";
const RECONCILER: &str = "src/controllers/widget.rs";
/// Text of the reconciler that a change replaces.
pub(crate) const LOGGED: &str = "\"Reconciling";

/// Returns a project that is built.
pub(super) fn run(bench: &Bench, kubewright: &Path, rows: &mut Rows) -> Result<Project> {
    let project = Project::make(kubewright)?;
    let plain = Project::make(kubewright)?;
    plain.use_default_profile()?;
    bench.progress.say("dev: first build of a project, takes minutes");
    let ours = project.build()?;
    bench.progress.say("dev: first build with cargo's default profile");
    let name = "first debug build of a new project";
    rows.sample_beside(name, Unit::Seconds, ours, (PEER, plain.build()?));
    for round in 1..=bench.rounds {
        bench.progress.say(&format!("dev: project, round {round} of {}", bench.rounds));
        for _ in 0..REPEATS {
            let made = Project::make(kubewright)?.took;
            rows.sample("init + create api", Unit::Millis, made).target = Some(MADE_MS);
        }
        for project in [&project, &plain] {
            project.change_reconciler(LOGGED, &format!("{LOGGED}, round {round}"))?;
        }
        let name = "debug build after editing the reconciler";
        let (ours, peer) = (project.build()?, plain.build()?);
        rows.sample_beside(name, Unit::Seconds, ours, (PEER, peer)).target = Some(AGAIN_S);
        rows.sample("manifests --check of a built project", Unit::Millis, project.manifests(kubewright)?);
    }
    Ok(project)
}

/// A project with one kind, and its target directory.
pub(crate) struct Project {
    root: TempDir,
    target: TempDir,
    /// Seconds for scaffolding.
    took: f64,
}

impl Project {
    pub(crate) fn make(kubewright: &Path) -> Result<Self> {
        let folder = || tempfile::tempdir().context("create a temporary directory");
        let mut made = Self { root: folder()?, target: folder()?, took: 0.0 };
        // The release build would depend on git.
        let checkout = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
        let init =
            format!("init --quiet --domain example.com --project-name {NAME} --kubewright-path {checkout}");
        let api = "create api --quiet --group bench --version v1 --kind Widget";
        for line in [&*init, api] {
            made.took += seconds(made.command(kubewright).args(line.split(' ')))?;
        }
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.lock");
        fs::copy(workspace, made.root.path().join("Cargo.lock")).context("copy Cargo.lock")?;
        Ok(made)
    }

    /// A command that runs `program` in the project.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.root.path())
            .env("CARGO_TARGET_DIR", self.target.path())
            .env("CARGO_NET_OFFLINE", "true")
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command
    }

    /// Builds the project and returns the seconds.
    fn build(&self) -> Result<f64> {
        let cargo = PathBuf::from(env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")));
        seconds(self.command(&cargo).args(["build", "--quiet"]))
    }

    fn manifests(&self, kubewright: &Path) -> Result<f64> {
        seconds(self.command(kubewright).args(["manifests", "--check", "--quiet"]))
    }

    /// Removes `[profile.dev]` from the project.
    fn use_default_profile(&self) -> Result<()> {
        let path = self.root.path().join("Cargo.toml");
        let text = fs::read_to_string(&path).context("read Cargo.toml")?;
        let sections = text.split_inclusive("\n\n").filter(|section| !section.contains("[profile.dev"));
        let changed: String = sections.collect();
        ensure!(changed != text, "no [profile.dev] in Cargo.toml");
        fs::write(&path, changed).context("write Cargo.toml")
    }

    /// A path in the project.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// A path in the state directory of `kubewright dev`.
    pub(super) fn kept(&self, name: &str) -> PathBuf {
        self.target.path().join("kubewright/dev").join(NAME).join(name)
    }

    /// Replaces text in the reconciler's source file.
    pub(crate) fn change_reconciler(&self, from: &str, to: &str) -> Result<()> {
        let path = self.root.path().join(RECONCILER);
        let text = fs::read_to_string(&path).context("read the reconciler")?;
        ensure!(text.contains(from), "no {from} in the reconciler");
        fs::write(&path, text.replacen(from, to, 1)).context("write the reconciler")
    }
}

/// Runs a command and returns the seconds. Fails if the command fails.
pub(crate) fn seconds(command: &mut Command) -> Result<f64> {
    let started = Instant::now();
    let status = command.status().with_context(|| format!("start {command:?}"))?;
    let took = started.elapsed().as_secs_f64();
    ensure!(status.success(), "{command:?} failed ({status}); see the output above");
    Ok(took)
}
