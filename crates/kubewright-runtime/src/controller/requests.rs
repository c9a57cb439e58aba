//! The work queue of a controller, and the detection of events that a reconcile caused itself.
//!
//! A reconcile that writes to the cluster gets an event for its own write. After a success that event runs the key once
//! more, as in controller-runtime. After a failure it must not: a reconcile that writes its error to the status would
//! run again immediately, in a loop. So an own event never runs a key before its backoff is over.
//!
//! Invariant: no event is lost. An own event is dropped only while a retry of its key is queued, and that retry sees
//! the change. An event that no known write explains counts as caused by another client.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::cause::Cause;
use super::pending_writes::PendingWrites;
use crate::Key;
use crate::cache::{Change, Occasion, Removal};
use crate::client::write_tracker::{Pending, WriteTracker};
use crate::queue::{DEFAULT_PRIORITY, SharedQueue};

/// The number of unexplained events of one run to keep. With more, at least one was caused by another client.
const UNEXPLAINED: usize = 16;

/// The number of entries above which those of terminal failures are dropped.
const SWEEP_FROM: usize = 1024;

/// The work queue of a controller. Clones share it.
#[derive(Clone)]
pub(crate) struct Requests {
    pub(super) queue: SharedQueue<Key, Cause>,
    /// Running keys, and keys whose last run failed after a write.
    attempts: Arc<Mutex<HashMap<Key, Attempt>>>,
    /// Why objects were removed from the watch, until their keys have run.
    removals: Arc<Mutex<HashMap<Key, Removal>>>,
    pending: Arc<PendingWrites>,
}

/// The last run of a key.
struct Attempt {
    phase: Phase,
    writes: WriteTracker,
    /// The writes of the previous run, if it failed: their events may arrive late.
    earlier: Option<WriteTracker>,
    /// Events during the run that no write explains yet. The event of a write may arrive before its response.
    unexplained: Vec<(Cause, Change)>,
    /// Whether another client's event requested another run.
    foreign: bool,
}

enum Phase {
    Running,
    /// It failed, and a retry is queued.
    Retrying,
    /// It failed, and is not retried before a change.
    Terminal,
}

impl Requests {
    pub(super) fn new(queue: SharedQueue<Key, Cause>) -> Self {
        Self { queue, attempts: Arc::default(), removals: Arc::default(), pending: Arc::default() }
    }

    /// Queues a key for a change. `of_itself` is true if the changed object is the one that the key names.
    pub(super) fn event(&self, key: Key, priority: i32, cause: Cause, change: &Change, of_itself: bool) {
        // Hold the lock while the key is queued, so that a run that ends concurrently sees both or neither.
        let mut attempts = self.lock();
        if let Some(attempt) = attempts.get_mut(&key) {
            let may_be_own = !(of_itself && is_new_generation(change));
            let own = may_be_own && attempt.caused(&cause, change);
            match attempt.phase {
                Phase::Running if own => {}
                Phase::Running if may_be_own && attempt.unexplained.len() < UNEXPLAINED => {
                    attempt.unexplained.push((cause.clone(), change.clone()));
                }
                Phase::Running => attempt.foreign = true,
                Phase::Retrying if own => return,
                Phase::Retrying => {}
                Phase::Terminal if own => {
                    attempt.phase = Phase::Retrying;
                    self.queue.add_rate_limited(key, priority, cause);
                    return;
                }
                Phase::Terminal => {
                    attempts.remove(&key);
                    self.queue.forget(&key);
                }
            }
        }
        self.queue.add(key, priority, cause);
    }

    /// Records why an object was removed from the cache, or that it exists.
    pub(super) fn note_removal(&self, key: &Key, removal: Option<Removal>) {
        let mut removals = self.removals.lock().unwrap_or_else(PoisonError::into_inner);
        match removal {
            Some(removal) => drop(removals.insert(key.clone(), removal)),
            None => drop(removals.remove(key)),
        }
    }

    /// Takes why an object was removed from the cache. The caller puts it back if the run fails.
    pub(super) fn take_removal(&self, key: &Key) -> Option<Removal> {
        self.removals.lock().unwrap_or_else(PoisonError::into_inner).remove(key)
    }

    /// Puts back the result of [`take_removal`](Self::take_removal), unless there is a newer one.
    pub(super) fn put_removal(&self, key: &Key, removal: Removal) {
        let mut removals = self.removals.lock().unwrap_or_else(PoisonError::into_inner);
        removals.entry(key.clone()).or_insert(removal);
    }

    /// The writes that the cache must see before a key may run.
    pub(super) fn take_pending(&self, key: &Key) -> Option<Vec<Pending>> {
        self.pending.take(key)
    }

    /// Adds the writes of a run that the cache has not seen. Queues keys whose writes are missing in a newer list.
    pub(super) fn put_pending(&self, key: &Key, pending: Vec<Pending>) {
        self.ask(self.pending.put(key, pending).into_iter());
    }

    /// Queues the keys whose writes are missing in a list that has ended.
    pub(super) fn relisted(&self) {
        self.ask(self.pending.take_missing().into_iter());
    }

    /// Queues keys that must run for a reason that is not an event.
    pub(super) fn ask(&self, asked: impl Iterator<Item = (Key, Cause)>) {
        let asked: Vec<_> = asked.collect();
        if asked.is_empty() {
            return;
        }
        let mut attempts = self.lock();
        for (key, _) in &asked {
            let Some(attempt) = attempts.get_mut(key) else { continue };
            attempt.foreign = true;
            if matches!(attempt.phase, Phase::Terminal) {
                attempts.remove(key);
                self.queue.forget(key);
            }
        }
        self.queue.add_all(asked, DEFAULT_PRIORITY);
    }

    /// Starts a run of a key. `writes` tracks the writes of the run.
    pub(super) fn begin(&self, key: &Key, writes: WriteTracker) {
        let mut attempts = self.lock();
        let earlier = attempts.remove(key).map(|attempt| attempt.writes).filter(|writes| !writes.is_empty());
        let attempt =
            Attempt { phase: Phase::Running, writes, earlier, unexplained: Vec::new(), foreign: false };
        attempts.insert(key.clone(), attempt);
    }

    /// Ends a successful run: every event since its start runs the key again.
    pub(super) fn settle(&self, key: &Key) {
        self.lock().remove(key);
    }

    /// Ends a failed run: queues a retry with backoff, or earlier if another client caused an event.
    pub(super) fn retry(&self, key: &Key, priority: i32, cause: Cause) -> Duration {
        let mut attempts = self.lock();
        self.end_failed(&mut attempts, key);
        self.queue.add_rate_limited(key.clone(), priority, cause)
    }

    /// Like [`retry`](Self::retry), after a fixed time instead of the backoff.
    pub(super) fn retry_after(&self, key: &Key, priority: i32, cause: Cause, time: Duration) {
        let mut attempts = self.lock();
        self.end_failed(&mut attempts, key);
        self.queue.forget(key);
        self.queue.add_after(key.clone(), priority, cause, time);
    }

    /// Ends a failed run whose retry is queued under the same lock.
    fn end_failed(&self, attempts: &mut HashMap<Key, Attempt>, key: &Key) {
        if let Some(attempt) = attempts.get_mut(key) {
            if attempt.is_all_own() {
                self.queue.retract(key);
            }
            if attempt.wrote_nothing() {
                attempts.remove(key);
            } else {
                attempt.end(Phase::Retrying);
            }
        }
    }

    /// Ends a run with a terminal error: the key runs again only after a change. An own write does not count as a
    /// change, but may hide a concurrent one; so the key also runs again for own writes, with backoff. Returns that
    /// delay.
    pub(super) fn fail(&self, key: &Key, priority: i32, cause: Cause) -> Option<Duration> {
        let mut attempts = self.lock();
        let Some(attempt) = attempts.get_mut(key).filter(|it| it.is_all_own() && !it.wrote_nothing()) else {
            attempts.remove(key);
            self.queue.forget(key);
            return None;
        };
        if self.queue.retract(key) {
            attempt.end(Phase::Retrying);
            return Some(self.queue.add_rate_limited(key.clone(), priority, cause));
        }
        attempt.end(Phase::Terminal);
        if attempts.len() >= SWEEP_FROM && attempts.len().is_power_of_two() {
            // A predicate dropped their events, or they are late. A late event runs its key immediately.
            attempts.retain(|key, attempt| {
                let keep = !matches!(attempt.phase, Phase::Terminal);
                if !keep {
                    self.queue.forget(key);
                }
                keep
            });
        }
        None
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Attempt>> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Attempt {
    /// Whether a write of this run, or of the one before it, explains the event.
    fn caused(&self, cause: &Cause, change: &Change) -> bool {
        let Some(kind) = cause.kind.as_ref().filter(|_| change.occasion == Occasion::Event) else {
            return false;
        };
        self.writes.caused(kind, change) || self.earlier.as_ref().is_some_and(|it| it.caused(kind, change))
    }

    fn is_all_own(&self) -> bool {
        !self.foreign && self.unexplained.iter().all(|(cause, change)| self.caused(cause, change))
    }

    fn wrote_nothing(&self) -> bool {
        self.writes.is_empty() && self.earlier.is_none()
    }

    fn end(&mut self, phase: Phase) {
        self.phase = phase;
        self.unexplained = Vec::new();
    }
}

/// Whether the spec changed. In that case a status write does not fully explain the event: concurrent changes of an
/// object are merged into one event.
fn is_new_generation(change: &Change) -> bool {
    let generations = change.old.as_ref().zip(change.new.as_ref());
    generations.is_some_and(|(old, new)| old.generation() != new.generation())
}
