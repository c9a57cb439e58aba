//! The development loop: from saving a file to the new reconciler's status in the cluster.
//!
//! `kubewright dev` runs on a built project. Each save changes the status message of the reconciler. The
//! measurement ends when a watch delivers that status. cargo's reported build time is subtracted in a
//! separate row.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result};
use kube::api::GroupVersionKind;

use super::scaffold::Project;
use super::session::{Dev, Sample};
use crate::row::{Rows, Unit};
use crate::suites::Bench;

const OWN_MS: f64 = 300.0;
/// The status message of the scaffolded reconciler.
const MESSAGE: &str = "Reconciled successfully";
const SAMPLE: &str = "widget-sample";

pub(super) fn run(bench: &Bench, kubewright: &Path, project: &Project, rows: &mut Rows) -> Result<()> {
    bench.progress.say("dev: starting `kubewright dev`");
    let mut command = project.command(kubewright);
    command.args(["dev", "--color", "never"]);
    let mut dev = Dev::start(command)?;
    dev.until(" ready the operator is running")?;
    let kind = GroupVersionKind::gvk("bench.example.com", "v1", "Widget");
    let sample = Sample::connect(project.kept("kubeconfig"), &kind, SAMPLE)?;
    let mut before = MESSAGE.to_owned();
    for round in 1..=bench.rounds {
        bench.progress.say(&format!("dev: save, round {round} of {}", bench.rounds));
        let message = format!("{MESSAGE}, round {round}.");
        let saved = Instant::now();
        project.change_reconciler(&before, &message)?;
        sample.wait_for(&message)?;
        let total = saved.elapsed().as_secs_f64();
        let cargo = finished(&dev.until(" Finished ")?)?;
        dev.until(" rebuilt in ")?;
        rows.sample("save to reconciled", Unit::Seconds, total);
        let own = "save to reconciled, without cargo's build time";
        rows.sample(own, Unit::Millis, (total - cargo).max(0.0)).target = Some(OWN_MS);
        before = message;
    }
    dev.end()
}

/// The build time in seconds from ``Finished `dev` profile [...] target(s) in 2.10s``.
fn finished(line: &str) -> Result<f64> {
    let (_, took) = line.rsplit_once(" in ").with_context(|| format!("no build time in {line:?}"))?;
    let mut seconds = 0.0;
    for part in took.split_whitespace() {
        let (number, unit) =
            part.split_at(part.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(part.len()));
        let number: f64 = number.parse().with_context(|| format!("parse the build time {took:?}"))?;
        seconds += if unit == "m" { number * 60.0 } else { number };
    }
    Ok(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargos_build_time_is_parsed() {
        let line = "    Finished `dev` profile [unoptimized + debuginfo] target(s) in";
        assert!((finished(&format!("{line} 2.10s")).unwrap() - 2.1).abs() < 1e-9);
        assert!((finished(&format!("{line} 1m 02s")).unwrap() - 62.0).abs() < 1e-9);
        assert!(finished("Finished").is_err());
    }
}
