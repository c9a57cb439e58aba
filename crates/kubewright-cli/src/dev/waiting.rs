//! How long the samples are asked whether they are ready: often at first, then now and then, until they are.

use std::time::Duration;

use anyhow::Result;
use tokio::time::Instant;

use super::definitions::Defined;
use super::readiness::tree::{Standing, standings};
use super::samples::Placed;

/// How often to ask, for how long, and how often afterwards.
const OFTEN: Duration = Duration::from_millis(50);
const FOR: Duration = Duration::from_secs(10);
const SELDOM: Duration = Duration::from_secs(1);
/// How long a controller may take to say something of an object for the first time.
const SILENCE: Duration = Duration::from_secs(3);
/// When it is told that it takes long.
const LATE: Duration = Duration::from_secs(30);

#[derive(Debug, Default)]
pub(crate) struct Waiting {
    samples: Vec<Placed>,
    /// Since when they are asked; not at all if none.
    since: Option<Instant>,
    is_late_told: bool,
}

impl Waiting {
    /// Asks these samples from now on.
    pub(crate) fn begin(&mut self, samples: Vec<Placed>) {
        self.samples = samples;
        self.again();
    }

    /// Asks the same ones from now on.
    pub(crate) fn again(&mut self) {
        self.since = Some(Instant::now());
        self.is_late_told = false;
    }

    /// Asks no more.
    pub(crate) fn end(&mut self) {
        self.since = None;
    }

    /// Whether it takes long, which is told once.
    pub(crate) fn is_late(&mut self) -> bool {
        let is_late = !self.is_late_told && self.since.is_some_and(|since| since.elapsed() >= LATE);
        self.is_late_told |= is_late;
        is_late
    }

    /// How they are, when it is time to ask. Can be given up and called again.
    pub(crate) async fn next(&self, client: &kube::Client, kinds: &[Defined]) -> Result<Vec<Standing>> {
        let Some(since) = self.since else { return std::future::pending().await };
        let pause = if since.elapsed() < FOR { OFTEN } else { SELDOM };
        tokio::time::sleep(pause).await;
        standings(client, &self.samples, kinds, since.elapsed() < SILENCE).await
    }
}
