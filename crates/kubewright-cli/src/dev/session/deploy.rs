//! Deploys a new build: manifests, CRDs, roles, the operator, webhooks, samples.
//!
//! Each step reports its duration, in a separate line the first time, later in one combined line. If a step
//! fails, later steps are skipped and the old operator keeps running.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use tokio::time::Instant;

use super::{SAMPLES_FAILED, Session, role};
use crate::dev::operator::Started;
use crate::dev::report::{count, shown};
use crate::project::Manifests;

/// The steps of a deployment.
struct Steps {
    /// Whether each step prints its own line.
    is_first: bool,
    /// The parts of the combined line.
    line: Vec<String>,
}

impl Session {
    /// Deploys a binary.
    pub(super) async fn deploy(&mut self, program: &Path, cargo: Duration) -> Result<()> {
        let mut steps = Steps { is_first: !self.is_deployed, line: vec![format!("cargo {}", shown(cargo))] };
        if steps.is_first {
            self.report.step("build", &format!("in {}", shown(cargo)))?;
        }
        let manifests = self.declare(program, &mut steps).await?;
        let is_same = self.replace(program, &mut steps).await?;
        self.is_deployed = true;
        self.webhooks.install(&manifests.inventory, &self.cluster, &self.report).await?;
        self.follow_samples(is_same, &mut steps).await?;
        if !(steps.is_first || is_same && self.builds.is_repeated()) {
            let total = shown(self.builds.elapsed());
            self.report.step("rebuilt", &format!("in {total} ({})", steps.line.join(", ")))?;
        }
        self.sources.refresh(&self.project, &mut self.builds).await
    }

    /// Writes the manifests, and applies the CRDs and the roles.
    async fn declare(&mut self, program: &Path, steps: &mut Steps) -> Result<Manifests> {
        let began = Instant::now();
        let mut manifests = self.declared.write(&self.project, program, &self.report).await?;
        self.webhooks.convert(&self.cluster, &mut manifests).await?;
        let took = shown(began.elapsed());
        steps.line.push(format!("manifests {took}"));
        if steps.is_first {
            let written = match manifests.changes.write.len() {
                0 => format!("{} unchanged", count(manifests.changes.unchanged.len(), "file")),
                written => format!("{} written", count(written, "file")),
            };
            self.report.step("manifests", &format!("{written} in {took}"))?;
        }
        role::report_changes(&manifests, &self.report)?;

        let began = Instant::now();
        let changed = self.declared.install(self.cluster.client(), &manifests.crds).await?;
        let took = shown(began.elapsed());
        if steps.is_first {
            let what = match changed {
                0 => format!("{} unchanged", count(manifests.crds.len(), "CRD")),
                changed => format!("{} installed", count(changed, "CRD")),
            };
            self.report.step("crds", &format!("{what} in {took}"))?;
        }
        steps.line.push(if changed == 0 {
            "crds unchanged".to_owned()
        } else {
            format!("crds ({changed} changed) {took}")
        });

        let granted = self.role.grant(&manifests.inventory, &self.cluster, &mut self.operator, &self.report);
        if granted.await? && !steps.is_first {
            steps.line.push("role changed".to_owned());
        }
        Ok(manifests)
    }

    /// Replaces the operator by another binary. Returns whether it is the same one, which keeps running.
    async fn replace(&mut self, program: &Path, steps: &mut Steps) -> Result<bool> {
        if self.operator.is_running() && self.operator.runs(program) {
            self.web_ui.feed().running(false, "same binary, not restarted");
            steps.line.push("same binary, not restarted".to_owned());
            return Ok(true);
        }
        let began = Instant::now();
        let started = self.operator.replace(program).await?;
        self.show_start(started, if steps.is_first { "started" } else { "restarted" }, began);
        if steps.is_first {
            self.report_start("started", started, began)?;
        }
        steps.line.push(format!("restart {}", shown(began.elapsed())));
        Ok(false)
    }

    /// Applies saved samples, and follows the samples of the cluster if the operator is new.
    async fn follow_samples(&mut self, is_same: bool, steps: &mut Steps) -> Result<()> {
        let began = Instant::now();
        if steps.is_first {
            self.samples.decide(&self.project, &self.cluster, self.once.is_some()).await?;
        }
        if self.samples.are_saved() {
            match self.apply_samples().await {
                Ok(applied) if steps.is_first => {
                    let took = shown(began.elapsed());
                    let what = count(applied, "object");
                    self.report.step("samples", &format!("{what} applied in {took}"))?;
                }
                Ok(_) => steps.line.push(format!("samples {}", shown(began.elapsed()))),
                Err(error) => self.survive(error, "samples", SAMPLES_FAILED)?,
            }
        } else if steps.is_first {
            self.samples.follow_kept(&self.project, &self.cluster, &self.declared.kinds()).await?;
        } else if !is_same {
            self.samples.follow_again(&self.cluster, &self.declared.kinds());
        }
        Ok(())
    }

    /// Applies the samples. Returns their number.
    pub(super) async fn apply_samples(&mut self) -> Result<usize> {
        self.samples.apply(&self.project, &self.cluster, &self.declared.kinds()).await
    }

    /// Starts an operator again that has exited.
    pub(super) async fn restart(&mut self) -> Result<()> {
        let began = Instant::now();
        let started = self.operator.start().await?;
        self.samples.check_now();
        self.show_start(started, "restarted", began);
        self.report_start("restarted", started, began)
    }

    /// Shows the start of the operator on the page.
    fn show_start(&self, started: Started, what: &str, since: Instant) {
        let took = shown(since.elapsed());
        match started {
            Started::Ready => self.web_ui.feed().running(true, &format!("{what} in {took}")),
            Started::Running => {
                self.web_ui.feed().running(true, &format!("{what}; caches not synced yet"));
            }
            // The exit is shown by the next event.
            Started::Exited => {}
        }
    }

    fn report_start(&self, what: &str, started: Started, since: Instant) -> Result<()> {
        let took = shown(since.elapsed());
        match started {
            Started::Ready => self.report.step("operator", &format!("{what} in {took}")),
            Started::Running => {
                self.report.step("operator", &format!("{what}; caches not synced after {took}"))
            }
            // The exit is reported by the next event.
            Started::Exited => Ok(()),
        }
    }
}
