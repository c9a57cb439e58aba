//! Decides which writes result from recorded events. Pure: time and randomness are arguments.
//!
//! Every distinct event is a [`Series`] with two counts: how often it was recorded, and the count that the server has.
//! Each write follows from their difference. So a failed write needs no extra state, and events recorded meanwhile are
//! part of the retry. A series has at most one write in flight.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::events::v1::{Event, EventSeries};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use tokio::time::Instant;

use super::occurrence::{Occurrence, SeriesKey};
use super::spam::SpamFilter;

/// A series that was not seen for this long has ended: its last count is written, and the next occurrence creates a new
/// Event.
const FINISH: Duration = Duration::from_mins(6);
/// How often the count of a continuing series is written; otherwise the Event would expire on the server.
const REFRESH: Duration = Duration::from_mins(30);
/// The number of attempts per write.
const TRIES: u32 = 12;
/// The delay between two attempts, plus up to 25 % jitter.
const RETRY: Duration = Duration::from_secs(10);
const RETRY_JITTER: f64 = 0.25;
/// The maximum number of series. Beyond it, the least recently seen series is dropped.
const SERIES: usize = 4096;
/// The minimum interval between two logs about dropped events.
const REPORT: Duration = Duration::from_mins(1);

/// Identifies a series. IDs increase, so that writes due at the same time are sent in the order of recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Id(u64);

/// A write to the API server.
#[derive(Debug)]
pub(super) struct Write {
    pub(super) id: Id,
    pub(super) namespace: String,
    pub(super) name: String,
    /// Whether an earlier attempt may have succeeded.
    pub(super) retried: bool,
    pub(super) request: Request,
}

#[derive(Debug)]
pub(super) enum Request {
    Create(Box<Event>),
    Patch(EventSeries),
}

/// The result of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The server stored it.
    Written,
    /// The Event exists already, created by an earlier attempt; its count is unknown.
    Exists,
    /// The Event to patch does not exist any more.
    Gone,
    /// Retriable failure.
    Failed,
    /// Permanent failure.
    Refused,
}

/// The numbers of events that were not written.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Losses {
    /// Dropped because a queue was full.
    pub(super) dropped: u64,
    /// Suppressed by the rate limit per object.
    pub(super) suppressed: u64,
}

#[derive(Debug, Default)]
pub(super) struct Correlator {
    series: BTreeMap<Id, Series>,
    ids: BTreeMap<Arc<SeriesKey>, Id>,
    /// When each series is due next.
    due: BTreeSet<(Instant, Id)>,
    /// When each series was last seen.
    seen: BTreeSet<(Instant, Id)>,
    spam: SpamFilter,
    next_id: u64,
    /// The number in the name of the last created Event.
    last_number: i128,
    losses: Losses,
    reported: Option<Instant>,
    flushing: bool,
}

#[derive(Debug)]
struct Series {
    key: Arc<SeriesKey>,
    /// The first occurrence, without a count.
    event: Box<Event>,
    /// How often it was recorded.
    count: i32,
    /// The count that the server has; 0 before the Event is created.
    written: i32,
    observed: Timestamp,
    seen: Instant,
    /// When it was first seen, or last written.
    since: Instant,
    progress: Progress,
    /// Its key in [`Correlator::due`].
    due: Option<Instant>,
}

#[derive(Debug, Clone, Copy)]
enum Progress {
    Idle,
    Writing { count: i32, tries: u32 },
    Waiting { until: Instant, tries: u32 },
    Refused { at: Instant },
}

impl Correlator {
    /// Adds a recorded event.
    pub(super) fn observe(&mut self, occurrence: Occurrence, now: Instant, rng: &mut fastrand::Rng) {
        let Occurrence { key, note, at } = occurrence;
        if let Some(&id) = self.ids.get(&key)
            && let Some(series) = self.series.get_mut(&id)
        {
            self.seen.remove(&(series.seen, id));
            self.seen.insert((now, id));
            series.count = series.count.saturating_add(1);
            series.observed = at;
            series.seen = now;
            self.schedule(id);
            return;
        }
        if !self.spam.admit(&key, now) {
            self.losses.suppressed += 1;
            return;
        }
        // The clock may stand still or go backwards; names must still be unique.
        self.last_number = at.as_nanosecond().max(self.last_number + 1);
        let event = key.event(key.event_name(self.last_number, rng), note, at);
        let id = Id(self.next_id);
        self.next_id += 1;
        let key = Arc::new(key);
        let series = Series {
            key: key.clone(),
            event: Box::new(event),
            count: 1,
            written: 0,
            observed: at,
            seen: now,
            since: now,
            progress: Progress::Idle,
            due: None,
        };
        self.series.insert(id, series);
        self.ids.insert(key, id);
        self.seen.insert((now, id));
        self.schedule(id);
        if self.series.len() > SERIES
            && let Some(&(_, oldest)) = self.seen.first()
        {
            let unwritten = self.forget(oldest).is_some_and(|series| series.unwritten() > 0);
            self.losses.dropped += u64::from(unwritten);
        }
    }

    /// Counts events that were dropped before they were observed.
    pub(super) fn lost(&mut self, dropped: u64) {
        self.losses.dropped += dropped;
    }

    /// The next write that is due, if any. The caller must report its result to [`done`](Self::done).
    pub(super) fn next_write(&mut self, now: Instant) -> Option<Write> {
        while let Some(&(moment, id)) = self.due.first()
            && moment <= now
        {
            let Some(series) = self.series.get_mut(&id) else {
                self.due.pop_first();
                continue;
            };
            if series.has_ended(now) && !self.flushing {
                self.forget(id);
                continue;
            }
            let write = series.write(id);
            self.schedule(id);
            return Some(write);
        }
        None
    }

    /// Applies the result of a write. Returns whether the write was given up after too many attempts.
    pub(super) fn done(&mut self, id: Id, outcome: Outcome, now: Instant, rng: &mut fastrand::Rng) -> bool {
        let flushing = self.flushing;
        let Some(series) = self.series.get_mut(&id) else { return false };
        let Progress::Writing { count, tries } = series.progress else { return false };
        let tries = tries + 1;
        let gives_up = outcome == Outcome::Failed && (tries >= TRIES || flushing);
        series.progress = match outcome {
            Outcome::Written => {
                series.written = count;
                series.since = now;
                Progress::Idle
            }
            Outcome::Exists => {
                series.written = 1;
                series.since = now;
                Progress::Idle
            }
            Outcome::Gone => {
                series.written = 0;
                Progress::Idle
            }
            Outcome::Failed if !gives_up => {
                Progress::Waiting { until: now + RETRY.mul_f64(1.0 + RETRY_JITTER * rng.f64()), tries }
            }
            Outcome::Failed | Outcome::Refused => Progress::Refused { at: now },
        };
        self.schedule(id);
        gives_up
    }

    /// When to call [`next_write`](Self::next_write) or [`report`](Self::report) again, unless something happens
    /// before.
    pub(super) fn wake_at(&self) -> Option<Instant> {
        let due = self.due.first().map(|&(moment, _)| moment);
        let report = self.reported.filter(|_| self.losses != Losses::default()).map(|last| last + REPORT);
        due.into_iter().chain(report).min()
    }

    /// The losses since the last report, at most once per [`REPORT`].
    pub(super) fn report(&mut self, now: Instant) -> Option<Losses> {
        let too_early = self.reported.is_some_and(|last| now < last + REPORT);
        if too_early || self.losses == Losses::default() {
            return None;
        }
        self.reported = Some(now);
        Some(std::mem::take(&mut self.losses))
    }

    /// From now on every unwritten count is due, once.
    pub(super) fn flush(&mut self) {
        self.flushing = true;
        let ids: Vec<Id> = self.series.keys().copied().collect();
        for id in ids {
            self.schedule(id);
        }
    }

    /// The number of occurrences that the server does not have.
    pub(super) fn unwritten(&self) -> u64 {
        self.series.values().map(Series::unwritten).sum()
    }

    /// Updates when a series is due.
    fn schedule(&mut self, id: Id) {
        let Some(series) = self.series.get_mut(&id) else { return };
        let due = if self.flushing { series.due_at_the_end() } else { series.due() };
        if series.due == due {
            return;
        }
        if let Some(before) = std::mem::replace(&mut series.due, due) {
            self.due.remove(&(before, id));
        }
        self.due.extend(due.map(|moment| (moment, id)));
    }

    fn forget(&mut self, id: Id) -> Option<Series> {
        let series = self.series.remove(&id)?;
        self.ids.remove(&series.key);
        self.seen.remove(&(series.seen, id));
        if let Some(due) = series.due {
            self.due.remove(&(due, id));
        }
        Some(series)
    }
}

impl Series {
    fn due(&self) -> Option<Instant> {
        match self.progress {
            Progress::Writing { .. } => None,
            Progress::Waiting { until, .. } => Some(until),
            // A permanent failure is retried if the event continues to occur, because permissions may have been
            // granted.
            Progress::Refused { at } => Some((at + REFRESH).min(self.seen + FINISH)),
            // The Event itself and the first repetition are written immediately.
            Progress::Idle if self.written == 0 || (self.written == 1 && self.count > 1) => Some(self.since),
            Progress::Idle if self.count > self.written => {
                Some((self.since + REFRESH).min(self.seen + FINISH))
            }
            Progress::Idle => Some(self.seen + FINISH),
        }
    }

    fn due_at_the_end(&self) -> Option<Instant> {
        let writable = matches!(self.progress, Progress::Idle | Progress::Waiting { .. });
        (writable && self.count > self.written).then_some(self.since)
    }

    /// Whether the series can be dropped.
    fn has_ended(&self, now: Instant) -> bool {
        let quiet = now >= self.seen + FINISH;
        match self.progress {
            Progress::Idle => quiet && self.written >= self.count,
            Progress::Refused { .. } => quiet,
            Progress::Writing { .. } | Progress::Waiting { .. } => false,
        }
    }

    /// The write that updates the server.
    fn write(&mut self, id: Id) -> Write {
        let tries = if let Progress::Waiting { tries, .. } = self.progress { tries } else { 0 };
        self.progress = Progress::Writing { count: self.count, tries };
        let series = (self.count > 1)
            .then_some(EventSeries { count: self.count, last_observed_time: MicroTime(self.observed) });
        let meta = &self.event.metadata;
        Write {
            id,
            namespace: meta.namespace.clone().unwrap_or_default(),
            name: meta.name.clone().unwrap_or_default(),
            retried: tries > 0,
            request: match series {
                Some(series) if self.written > 0 => Request::Patch(series),
                series => {
                    let mut event = self.event.clone();
                    event.series = series;
                    Request::Create(event)
                }
            },
        }
    }

    fn unwritten(&self) -> u64 {
        u64::try_from(self.count - self.written).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
