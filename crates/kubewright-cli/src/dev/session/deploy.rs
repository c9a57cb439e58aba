//! Deploys a new build: manifests, CRDs, the operator, samples.
//!
//! Each step reports its duration, in a separate line the first time, later in one combined line. If a step
//! fails, later steps are skipped and the old operator keeps running.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use kubewright_manifests::declarations::Declarations;
use tokio::time::Instant;

use super::{Repeat, SAMPLES_STAY, Session};
use crate::dev::operator::Started;
use crate::dev::report::{count, shown};
use crate::dev::samples::{self, Placed};
use crate::error::Hint as _;
use crate::project::{Manifests, manifests};

impl Session {
    /// Deploys a binary. The first time, each step prints its own line.
    pub(super) async fn deploy(&mut self, program: &Path, cargo: Duration) -> Result<()> {
        let mut line = vec![format!("cargo {}", shown(cargo))];
        let is_first = !self.is_deployed;
        if is_first {
            self.report.step("build", &format!("in {}", shown(cargo)))?;
        }

        let began = Instant::now();
        let mut manifests = self.manifests(program).await?;
        match &mut self.webhooks {
            Some(webhooks) => {
                webhooks.convert_here(self.cluster.client(), &mut manifests.definitions).await?;
            }
            // Without the conversion, objects of the other versions could be neither read nor written.
            None if !manifests.declarations.conversions.is_empty() => {
                return Err(anyhow!(
                    "the operator converts versions, and it is not known how this cluster reaches it"
                ))
                .hint(
                    "set --webhook-host to a name or address of this machine that the cluster can connect to",
                );
            }
            None => {}
        }
        let took = shown(began.elapsed());
        line.push(format!("manifests {took}"));
        if is_first {
            let written = match manifests.changes.write.len() {
                0 => format!("{} unchanged", count(manifests.changes.unchanged.len(), "file")),
                written => format!("{} written", count(written, "file")),
            };
            self.report.step("manifests", &format!("{written} in {took}"))?;
        }

        let began = Instant::now();
        let changed = self.definitions.apply(self.cluster.client(), &manifests.definitions).await?;
        let took = shown(began.elapsed());
        if is_first {
            let what = match changed {
                0 => format!("{} unchanged", count(manifests.definitions.len(), "CRD")),
                changed => format!("{} installed", count(changed, "CRD")),
            };
            self.report.step("crds", &format!("{what} in {took}"))?;
        }
        line.push(if changed == 0 {
            "crds unchanged".to_owned()
        } else {
            format!("crds ({changed} changed) {took}")
        });

        if self.grant(&manifests.declarations).await? && !is_first {
            line.push("role changed".to_owned());
        }

        let is_same = self.operator.is_running() && self.operator.runs(program);
        if is_same {
            self.feed.running(false, "same binary, not restarted");
            line.push("same binary, not restarted".to_owned());
        } else {
            let began = Instant::now();
            let started = self.operator.replace(program).await?;
            self.show_start(started, if is_first { "started" } else { "restarted" }, began);
            if is_first {
                self.tell_start("started", started, began)?;
            }
            line.push(format!("restart {}", shown(began.elapsed())));
        }

        self.is_deployed = true;
        self.install_webhooks(&manifests.declarations, is_first).await?;
        let began = Instant::now();
        self.is_sample_saved |= is_first && self.is_to_apply_samples().await?;
        if self.is_sample_saved {
            match self.apply_samples().await {
                Ok(applied) if is_first => {
                    let took = shown(began.elapsed());
                    self.report
                        .step("samples", &format!("{} applied in {took}", count(applied, "object")))?;
                }
                Ok(_) => line.push(format!("samples {}", shown(began.elapsed()))),
                Err(error) => self.survive(error, "samples", SAMPLES_STAY)?,
            }
        } else if is_first {
            let placed = self.kept_samples().await?;
            self.waiting.begin(placed, self.cluster.client(), &self.definitions.kinds());
        } else if !is_same {
            self.waiting.again(self.cluster.client(), &self.definitions.kinds());
        }

        if !(is_first || is_same && self.repeat == Repeat::Running) {
            let total = shown(self.since.elapsed());
            self.report.step("rebuilt", &format!("in {total} ({})", line.join(", ")))?;
        }
        self.look_for_sources().await
    }

    /// Configures the API server to call the operator's webhooks. The operator already serves them.
    async fn install_webhooks(&mut self, declarations: &Declarations, is_first: bool) -> Result<()> {
        let Some(webhooks) = &mut self.webhooks else {
            if is_first && declarations.serves_webhooks() {
                let message = "not installed: cannot detect how this cluster reaches your machine; \
                               set --webhook-host to a reachable name or address";
                self.report.failed("webhooks", message)?;
            }
            return Ok(());
        };
        let installed = webhooks.apply(self.cluster.client(), declarations).await?;
        if installed > 0
            && let Some(unreachable) = webhooks.check_reachable(self.cluster.client()).await?
        {
            // Without the conversion, objects of the other versions could be neither read nor written.
            if !declarations.conversions.is_empty() {
                return Err(anyhow!("webhooks: {unreachable}"));
            }
            self.report.failed("webhooks", &unreachable.to_string())?;
            return Ok(());
        }
        if is_first && installed > 0 {
            self.report.step("webhooks", &format!("{} served locally", count(installed, "webhook")))?;
        }
        Ok(())
    }

    /// Reads the inventory of the binary and writes the generated files.
    async fn manifests(&mut self, program: &Path) -> Result<Manifests> {
        let (project, program) = (self.project.clone(), program.to_owned());
        let made = tokio::task::spawn_blocking(move || {
            let declarations = project.declared_by(&program)?;
            let made = project.manifests(&declarations, &manifests::Options::default())?;
            if made.check().is_ok() {
                made.write(&project, false)?;
            }
            anyhow::Ok(made)
        });
        let made = made.await.context("failed to generate the manifests")??;
        let findings = made.findings();
        if findings != self.findings {
            self.ui.print_styled_error(&findings);
            self.findings = findings;
        }
        made.check()?;
        Ok(made)
    }

    /// Shows the start of the operator on the page.
    pub(super) fn show_start(&self, started: Started, what: &str, since: Instant) {
        let took = shown(since.elapsed());
        match started {
            Started::Ready => self.feed.running(true, &format!("{what} in {took}")),
            Started::Running => self.feed.running(true, &format!("{what}; caches not synced yet")),
            // The exit is shown by the next event.
            Started::Ended => {}
        }
    }

    pub(super) fn tell_start(&self, what: &str, started: Started, since: Instant) -> Result<()> {
        let took = shown(since.elapsed());
        match started {
            Started::Ready => self.report.step("operator", &format!("{what} in {took}")),
            Started::Running => {
                self.report.step("operator", &format!("{what}; caches not synced after {took}"))
            }
            // The exit is reported by the next event.
            Started::Ended => Ok(()),
        }
    }

    /// Whether the first deployment applies the samples.
    async fn is_to_apply_samples(&self) -> Result<bool> {
        Ok(match self.samples {
            Some(samples) => samples,
            None => self.once.is_some() || self.cluster.wants(&samples::read(self.project.root())?).await?,
        })
    }

    /// Applies the samples. Returns their number.
    pub(super) async fn apply_samples(&mut self) -> Result<usize> {
        let client = self.cluster.client();
        let mut placed = Vec::new();
        for sample in samples::read(self.project.root())? {
            placed.push(sample.apply(client).await?);
        }
        let applied = placed.len();
        self.is_sample_saved = false;
        self.cluster.sampled()?;
        self.waiting.begin(placed, self.cluster.client(), &self.definitions.kinds());
        Ok(applied)
    }

    /// Samples that exist from an earlier run.
    async fn kept_samples(&self) -> Result<Vec<Placed>> {
        let client = self.cluster.client();
        let mut kept = Vec::new();
        for sample in samples::read(self.project.root())? {
            let placed = sample.place(client).await?;
            if placed.exists(client).await? {
                kept.push(placed);
            }
        }
        Ok(kept)
    }

    /// Updates the watched sources after a change of Cargo.toml.
    async fn look_for_sources(&mut self) -> Result<()> {
        let Some(watcher) = self.watcher.as_mut().filter(|_| self.is_moved) else { return Ok(()) };
        let (project, bin) = (self.project.clone(), self.builder.bin.clone());
        let metadata = tokio::task::spawn_blocking(move || project.metadata(bin.as_deref()));
        let metadata = metadata.await.context("failed to run cargo metadata")??;
        watcher.watch(metadata.sources)?;
        self.builder.selection = metadata.selection;
        self.is_moved = false;
        Ok(())
    }
}
