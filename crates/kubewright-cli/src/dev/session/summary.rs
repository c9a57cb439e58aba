//! The summary: whether the samples are ready.

use anyhow::Result;
use tokio::time::Instant;

use crate::dev::report::{Report, shown};
use crate::dev::sample_status::SampleStatus;

pub(super) struct Summary {
    /// When the loop started.
    started: Instant,
    samples: Vec<SampleStatus>,
    /// The verdict of the last printed summary.
    reported: Option<bool>,
}

impl Summary {
    pub(super) fn new(started: Instant) -> Self {
        Self { started, samples: Vec::new(), reported: None }
    }

    /// Records the states of the samples, or why they could not be read.
    pub(super) fn update(&mut self, samples: Result<Vec<SampleStatus>>) {
        self.samples = samples.unwrap_or_else(|error| {
            vec![SampleStatus { sample: "samples".to_owned(), text: format!("{error:#}"), is_ready: false }]
        });
    }

    pub(super) fn is_ready(&self) -> bool {
        self.samples.iter().all(|sample| sample.is_ready)
    }

    pub(super) fn has_reported_ready(&self) -> bool {
        self.reported == Some(true)
    }

    /// The samples that are not ready, with their reasons.
    pub(super) fn not_ready(&self) -> impl Iterator<Item = String> {
        let waiting = self.samples.iter().filter(|sample| !sample.is_ready);
        waiting.map(|sample| format!("{}: {}", sample.sample, sample.text))
    }

    /// Prints the summary, with the command line and the page that show more.
    pub(super) fn print(
        &mut self,
        is_ready: bool,
        kubectl: &str,
        page: Option<&str>,
        report: &Report,
    ) -> Result<()> {
        let is_first = self.reported.replace(is_ready).is_none();
        let after =
            if is_first { format!(" after {}", shown(self.started.elapsed())) } else { String::new() };
        if is_ready {
            report.result("ready", &format!("the operator is running{after}"))?;
        } else {
            report.failed("not ready", &format!("not all samples are ready{after}"))?;
        }
        for SampleStatus { sample, text, is_ready } in &self.samples {
            let line = format!("{sample}: {text}");
            if *is_ready {
                report.result("sample", &line)?;
            } else {
                report.failed("sample", &line)?;
            }
        }
        report.result("kubectl", kubectl)?;
        match page {
            Some(url) => report.result("page", url),
            None => Ok(()),
        }
    }
}
