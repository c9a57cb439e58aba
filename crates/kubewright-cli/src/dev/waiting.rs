//! Whether the samples are ready: asked when something changed that they may depend on, until they are.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use futures_util::StreamExt as _;
use kube::api::{Api, DynamicObject, WatchParams};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, sleep_until};

use super::definitions::Defined;
use super::readiness::tree::{Standing, places, standings};
use super::samples::Placed;

/// How much time is left between two looks: what changes together is looked at together.
const PAUSE: Duration = Duration::from_millis(20);
/// How often to look where changes cannot be watched.
const SELDOM: Duration = Duration::from_secs(1);
/// How long a controller may take to say something of an object for the first time.
const SILENCE: Duration = Duration::from_secs(3);
/// When it is told that it takes long.
const LATE: Duration = Duration::from_secs(30);

#[derive(Debug, Default)]
pub(crate) struct Waiting {
    samples: Vec<Placed>,
    /// Since when they are looked at; not at all if none.
    since: Option<Instant>,
    /// When they were looked at last; to be done at once if none.
    looked: Option<Instant>,
    is_late_told: bool,
    /// Told of every change of what they may depend on.
    changed: Arc<Notify>,
    /// Those who tell.
    watches: JoinSet<()>,
}

impl Waiting {
    /// Looks at these samples from now on.
    pub(crate) fn begin(&mut self, samples: Vec<Placed>, client: &kube::Client, kinds: &[Defined]) {
        self.samples = samples;
        self.again(client, kinds);
    }

    /// Looks at the same ones from now on.
    pub(crate) fn again(&mut self, client: &kube::Client, kinds: &[Defined]) {
        self.since = Some(Instant::now());
        self.looked = None;
        self.is_late_told = false;
        self.watches = JoinSet::new();
        for place in places(client, &self.samples, kinds) {
            self.watches.spawn(watch(place, Arc::clone(&self.changed)));
        }
    }

    /// Looks again at once.
    pub(crate) fn look(&mut self) {
        self.looked = None;
    }

    /// Looks no more.
    pub(crate) fn end(&mut self) {
        self.since = None;
        self.watches = JoinSet::new();
    }

    /// Whether it takes long, which is told once.
    pub(crate) fn is_late(&mut self) -> bool {
        let is_late = !self.is_late_told && self.since.is_some_and(|since| since.elapsed() >= LATE);
        self.is_late_told |= is_late;
        is_late
    }

    /// How they are, when that may be news. Can be given up and called again.
    pub(crate) async fn next(&mut self, client: &kube::Client, kinds: &[Defined]) -> Result<Vec<Standing>> {
        let Some(since) = self.since else { return std::future::pending().await };
        if let Some(looked) = self.looked {
            let wake = [SILENCE, LATE].map(|time| since + time).into_iter().find(|time| *time > looked);
            tokio::select! {
                () = self.changed.notified() => {}
                () = at(wake) => {}
            }
            // Whoever gives up from here on has still to look.
            self.looked = None;
            sleep_until(looked + PAUSE).await;
        }
        let now = Instant::now();
        let standings = standings(client, &self.samples, kinds, now - since < SILENCE).await;
        self.looked = Some(now);
        standings
    }
}

async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Tells of every change in a place. Where it cannot be watched, now and then.
async fn watch(place: Api<DynamicObject>, changed: Arc<Notify>) {
    let mut again = tokio::time::interval(SELDOM);
    // A watch lasts for minutes: the times that went by are no reason to ask at once, again and again.
    again.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        again.tick().await;
        // From what is there now: that it is there is a change too.
        if let Ok(events) = place.watch_metadata(&WatchParams::default(), "0").await {
            let mut events = std::pin::pin!(events);
            while let Some(Ok(_)) = events.next().await {
                changed.notify_one();
            }
        }
        changed.notify_one();
    }
}
