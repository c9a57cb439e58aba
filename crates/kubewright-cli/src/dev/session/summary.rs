//! The summary: whether the samples are ready.

use anyhow::{Result, anyhow};

use super::Session;
use crate::dev::readiness::tree::Standing;
use crate::dev::report::shown;
use crate::error::Hint as _;

impl Session {
    /// Records the states of the samples and reports changes. Returns whether all are ready.
    pub(super) fn stand(&mut self, standings: Result<Vec<Standing>>) -> Result<bool> {
        self.standings = match standings {
            Ok(standings) => standings,
            Err(error) => {
                vec![Standing { sample: "samples".to_owned(), text: format!("{error:#}"), is_ready: false }]
            }
        };
        let runs = self.operator.is_running() && self.operator.trouble().is_none();
        let is_ready = runs && self.standings.iter().all(|standing| standing.is_ready);
        if is_ready {
            self.waiting.end();
            if self.told != Some(true) {
                self.summarize(true)?;
            }
        } else if self.waiting.is_late() && self.once.is_none() {
            self.summarize(false)?;
        }
        Ok(is_ready)
    }

    /// Prints the summary.
    fn summarize(&mut self, is_ready: bool) -> Result<()> {
        let is_first = self.told.replace(is_ready).is_none();
        let after =
            if is_first { format!(" after {}", shown(self.started.elapsed())) } else { String::new() };
        if is_ready {
            self.report.result("ready", &format!("the operator is running{after}"))?;
        } else {
            self.report.failed("not ready", &format!("not all samples are ready{after}"))?;
        }
        for Standing { sample, text, is_ready } in &self.standings {
            let line = format!("{sample}: {text}");
            if *is_ready {
                self.report.result("sample", &line)?;
            } else {
                self.report.failed("sample", &line)?;
            }
        }
        let mut plurals: Vec<String> = self.definitions.kinds().into_iter().map(|kind| kind.plural).collect();
        plurals.dedup();
        self.report.result("kubectl", &self.cluster.kubectl(&plurals))?;
        match &self.page {
            Some(page) => self.report.result("page", &page.url()),
            None => Ok(()),
        }
    }

    /// The timeout error of `--once`.
    pub(super) fn timed_out(&self) -> anyhow::Error {
        let mut reasons: Vec<String> = Vec::new();
        reasons.extend(self.operator.trouble().map(str::to_owned));
        let waits = self.standings.iter().filter(|standing| !standing.is_ready);
        reasons.extend(waits.map(|standing| format!("{}: {}", standing.sample, standing.text)));
        let patience = shown(self.once.unwrap_or_default());
        anyhow!("samples not ready {patience} after the build\n{}", reasons.join("\n"))
            .hint("increase --timeout, or run without --once and inspect the cluster with kubectl")
    }
}
