//! README's first command in a new clone, and the development loop on its example.
//!
//! The first command compiles everything, so it runs once per run. Builds are offline: downloads are not measured. The
//! other rows use the program that it built.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use kube::api::GroupVersionKind;
use tempfile::TempDir;

use super::Bench;
use super::scaffold::seconds;
use super::session::{Dev, Sample};
use crate::process::children_cpu_time;
use crate::row::{Rows, Unit};

const WALL_S: f64 = 180.0;
const SAVE_S: f64 = 2.0;
/// From a code change to the new process with `live_update`, for a web server in Go on another machine:
/// <https://docs.tilt.dev/example_go>. The documentation of kind has no figures.
const TILT: (&str, f64) = ("Tilt's docs", 1.5);

const EXAMPLE: &str = "examples/markdown-view";
const SAMPLE: &str = "markdownview-sample";
const RECONCILER: &str = "src/controllers/markdown_view.rs";
const TYPES: &str = "src/api/v1/markdown_view.rs";
/// The status message of the reconciler.
const MESSAGE: &str = "viewers are available";
/// The description of a field in the CRD.
const DESCRIPTION: &str = "Number of viewer Pods";

pub(super) fn run(bench: &Bench, rows: &mut Rows) -> Result<()> {
    let clone = Clone::make()?;
    bench.progress.say("dev: README's first command in a new clone, takes minutes");
    let (cpu, started) = (children_cpu_time()?, Instant::now());
    let mut command = clone.command(&cargo());
    command.args(["run", "--", "dev", EXAMPLE]);
    let mut dev = Dev::start(command)?;
    dev.until(": Available")?;
    rows.sample("first command, cold", Unit::Seconds, started.elapsed().as_secs_f64()).target = Some(WALL_S);
    // The CPU time of a process counts when it has ended.
    dev.end()?;
    let cpu = children_cpu_time()?.saturating_sub(cpu);
    rows.sample("first command, cold, CPU", Unit::Seconds, cpu.as_secs_f64());

    let kubewright = clone.target.path().join("debug/kubewright");
    let dev = || {
        let mut command = clone.command(&kubewright);
        command.args(["dev", "--color", "never", EXAMPLE]);
        Dev::start(command)
    };
    for round in 1..=bench.rounds {
        bench.progress.say(&format!("dev: warm start, round {round} of {}", bench.rounds));
        let started = Instant::now();
        let mut dev = dev()?;
        dev.until(" ready the operator is running")?;
        rows.sample("warm start to ready", Unit::Seconds, started.elapsed().as_secs_f64());
        dev.end()?;
    }

    let mut dev = dev()?;
    dev.until(" ready the operator is running")?;
    let kind = GroupVersionKind::gvk("view.example.com", "v1", "MarkdownView");
    let kubeconfig = clone.target.path().join("kubewright/dev/markdown-view/kubeconfig");
    let sample = Sample::connect(kubeconfig, &kind, SAMPLE)?;
    let (mut message, mut description) = (MESSAGE.to_owned(), DESCRIPTION.to_owned());
    for round in 1..=bench.rounds {
        bench.progress.say(&format!("dev: save of markdown-view, round {round} of {}", bench.rounds));
        let next = format!("{MESSAGE}, round {round}.");
        let saved = Instant::now();
        clone.replace(RECONCILER, &message, &next)?;
        sample.wait_for(&next)?;
        let took = saved.elapsed().as_secs_f64();
        dev.until(" rebuilt in ")?;
        let name = "save of a reconciler to reconciled, markdown-view";
        rows.sample_beside(name, Unit::Seconds, took, TILT).target = Some(SAVE_S);
        message = next;

        // Both files are saved within the time that `dev` waits for further changes.
        let (next, described) = (format!("{message}.."), format!("{DESCRIPTION}, round {round}"));
        let saved = Instant::now();
        clone.replace(TYPES, &description, &described)?;
        clone.replace(RECONCILER, &message, &next)?;
        sample.wait_for(&next)?;
        let took = saved.elapsed().as_secs_f64();
        let line = dev.until(" rebuilt in ")?;
        ensure!(line.contains("crds (1 changed)"), "the CRD did not change: {line}");
        let name = "save of a type to reconciled, markdown-view";
        rows.sample_beside(name, Unit::Seconds, took, TILT).target = Some(SAVE_S);
        (message, description) = (next, described);
    }
    dev.end()
}

fn cargo() -> PathBuf {
    env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from)
}

/// A clone of this repository with an empty target directory.
struct Clone {
    root: TempDir,
    target: TempDir,
}

impl Clone {
    fn make() -> Result<Self> {
        let folder = || tempfile::tempdir().context("create a temporary directory");
        let clone = Self { root: folder()?, target: folder()? };
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        seconds(Command::new("git").args(["clone", "--quiet"]).arg(here).arg(clone.root.path()))?;
        Ok(clone)
    }

    /// A command that runs `program` in the clone.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        // Remove the variables of this package: build scripts would run again.
        let of_package = |name: &str| ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|it| name.starts_with(it));
        for (name, _) in env::vars_os().filter(|(name, _)| name.to_str().is_some_and(of_package)) {
            command.env_remove(name);
        }
        command
            .current_dir(self.root.path())
            .env("CARGO_TARGET_DIR", self.target.path())
            .env("CARGO_NET_OFFLINE", "true")
            .stdin(Stdio::null());
        command
    }

    /// Replaces text in a file of the example.
    fn replace(&self, file: &str, from: &str, to: &str) -> Result<()> {
        let path = self.root.path().join(EXAMPLE).join(file);
        let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        ensure!(text.contains(from), "no {from:?} in {}", path.display());
        fs::write(&path, text.replacen(from, to, 1)).with_context(|| format!("write {}", path.display()))
    }
}
