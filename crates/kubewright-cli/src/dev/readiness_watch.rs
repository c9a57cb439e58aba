//! Evaluates the readiness of the samples whenever a related object changes, until they are ready.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use futures_util::StreamExt as _;
use kube::api::{Api, DynamicObject, WatchParams};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, sleep_until};

use super::crds::CustomKind;
use super::sample_status::{SampleStatus, evaluate, places};
use super::samples::Placed;

/// Minimum time between two evaluations, to coalesce changes.
const PAUSE: Duration = Duration::from_millis(20);
/// Polling interval if watches fail.
const POLL: Duration = Duration::from_secs(1);
/// How long a controller may take to set the first status.
const FIRST_STATUS: Duration = Duration::from_secs(3);
/// When to report that readiness takes long.
const LATE: Duration = Duration::from_secs(30);

#[derive(Debug, Default)]
pub(crate) struct ReadinessWatch {
    samples: Vec<Placed>,
    /// Start time; `None` if inactive.
    since: Option<Instant>,
    /// Last evaluation; `None` forces one.
    evaluated: Option<Instant>,
    is_late_reported: bool,
    /// Notified of every related change.
    changed: Arc<Notify>,
    /// The watch tasks.
    watches: JoinSet<()>,
}

impl ReadinessWatch {
    /// Starts with these samples.
    pub(crate) fn start(&mut self, samples: Vec<Placed>, client: &kube::Client, kinds: &[CustomKind]) {
        self.samples = samples;
        self.restart(client, kinds);
    }

    /// Restarts with the same samples.
    pub(crate) fn restart(&mut self, client: &kube::Client, kinds: &[CustomKind]) {
        self.since = Some(Instant::now());
        self.evaluated = None;
        self.is_late_reported = false;
        self.watches = JoinSet::new();
        for place in places(client, &self.samples, kinds) {
            self.watches.spawn(watch(place, Arc::clone(&self.changed)));
        }
    }

    /// Forces an evaluation.
    pub(crate) fn check_now(&mut self) {
        self.evaluated = None;
    }

    /// Stops.
    pub(crate) fn stop(&mut self) {
        self.since = None;
        self.watches = JoinSet::new();
    }

    /// Whether it takes long; true only once.
    pub(crate) fn is_late(&mut self) -> bool {
        let is_late = !self.is_late_reported && self.since.is_some_and(|since| since.elapsed() >= LATE);
        self.is_late_reported |= is_late;
        is_late
    }

    /// Waits for a possible change and returns the states. Cancel-safe.
    pub(crate) async fn next(
        &mut self,
        client: &kube::Client,
        kinds: &[CustomKind],
    ) -> Result<Vec<SampleStatus>> {
        let Some(since) = self.since else { return std::future::pending().await };
        if let Some(evaluated) = self.evaluated {
            let wake =
                [FIRST_STATUS, LATE].map(|time| since + time).into_iter().find(|time| *time > evaluated);
            tokio::select! {
                () = self.changed.notified() => {}
                () = at(wake) => {}
            }
            // If canceled from here on, evaluate again.
            self.evaluated = None;
            sleep_until(evaluated + PAUSE).await;
        }
        let now = Instant::now();
        let statuses = evaluate(client, &self.samples, kinds, now - since < FIRST_STATUS).await;
        self.evaluated = Some(now);
        statuses
    }
}

async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Notifies of every change in an API. Polls if it cannot be watched.
async fn watch(place: Api<DynamicObject>, changed: Arc<Notify>) {
    let mut again = tokio::time::interval(POLL);
    // A watch lasts minutes; missed ticks must not cause a burst.
    again.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        again.tick().await;
        // Resource version 0 also delivers existing objects, which count as changes.
        if let Ok(events) = place.watch_metadata(&WatchParams::default(), "0").await {
            let mut events = std::pin::pin!(events);
            while let Some(Ok(_)) = events.next().await {
                changed.notify_one();
            }
        }
        changed.notify_one();
    }
}
