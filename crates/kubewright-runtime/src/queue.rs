//! The work queue of a controller.
//!
//! [`Queue`] is the state machine: no clock, no lock, no task. The caller passes the time to every call, as the
//! duration since a fixed start. [`SharedQueue`] wraps it for concurrent workers and uses tokio's clock.
//! [`WorkQueue`] is the same with client-go's methods, for a control loop without a manager. [`QueueMetrics`] exports
//! controller-runtime's metrics.
//!
//! # Properties
//!
//! - **No concurrency per item.** An item that was handed out is not handed out again before [`done`](Queue::done).
//! - **No lost adds.** An item that is added while it runs, runs once more after it is done.
//! - **Deduplicated.** An item that is added several times while it waits is handed out once, with the highest
//!   priority, the earliest time and the first few [`Causes`] of these adds.
//! - **Delays.** [`add_after`](Queue::add_after) adds an item for later. An immediate add pulls it forward.
//! - **Backoff.** [`add_rate_limited`](Queue::add_rate_limited) delays an item by its [`Backoff`], which depends on the
//!   number of its failures, or by the [`RateLimit`] of the queue if that is longer. A [`RateLimiter`] replaces both.
//!   [`forget`](Queue::forget) resets the failures.
//! - **Priorities.** Higher priorities are handed out first. The first list of a watch and resyncs are added with
//!   [`LOW_PRIORITY`].
//! - **Fair.** Within a priority the groups of items take turns (for a [`Key`] its namespace); within a group items are
//!   first in, first out. A namespace with 100,000 keys delays the only key of another by one item.
//! - **No starvation.** Every 64th item is the one that has been ready for longest, regardless of priority and group.
//!   So an item with *n* items ready before it is handed out after at most 64 (*n* + 1) others.
//!   [`Options::oldest_every`] changes or disables this.
//! - **Holding.** An item that was handed out too early can be given back ([`hold`](Queue::hold)). It counts as handed
//!   out, occupies no worker, and goes to the front of its group after [`release`](Queue::release).
//! - **Fast.** Every operation takes constant time, except for the logarithm of the number of delayed items and of
//!   priorities.
//! - **Deterministic.** The same calls give the same results, in the same order.
//!
//! Not promised: strict priorities (see starvation), and that an item keeps its position when its priority rises: it
//! goes to the end of its group at the new priority.

use std::collections::BTreeMap;
use std::hash::BuildHasher;
use std::num::NonZeroU32;
use std::time::Duration;

use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashTable};
use slab::Slab;

use crate::Key;

mod backoff;
mod bands;
mod causes;
mod inspect;
mod item;
mod limiter;
mod list;
mod metrics;
mod shared;
mod slot;
mod sync;
#[cfg(test)]
mod tests;
mod waiters;
mod work_queue;

pub use backoff::{Backoff, RateLimit};
pub use causes::Causes;
pub use inspect::{Counts, Running, Waiting, WaitsFor};
pub use item::{Item, Namespace};
pub(crate) use limiter::jittered;
pub use limiter::{BucketLimiter, FastSlow, Limiter, MaxOf, RateLimiter, WithMaxWait};
pub use metrics::QueueMetrics;
pub use shared::SharedQueue;
pub use work_queue::{Processing, WorkQueue};

use backoff::{Bucket, nanos};
use bands::{End, PriorityBands};
use list::{List, number};
use slot::{Due, Slot, State};

/// The number of slots that an empty queue keeps allocated.
const SPARE: usize = 4096;

/// The default priority.
pub const DEFAULT_PRIORITY: i32 = 0;

/// The priority of the first list of a watch and of resyncs.
pub const LOW_PRIORITY: i32 = -100;

/// Options of a queue.
#[derive(Debug, Clone)]
pub struct Options<T = Key> {
    /// The delay of an item by the number of its failures.
    pub backoff: Backoff,
    /// Limits the retries of all items together. None by default, as in controller-runtime's priority queue.
    pub rate_limit: Option<RateLimit>,
    /// Computes the delay of retries instead of `backoff` and `rate_limit`. None by default.
    pub rate_limiter: Option<Limiter<T>>,
    /// Adds up to this fraction to the delay of each retry: 0.1 makes 10 s at most 11 s. 0 by default, as in client-go.
    pub jitter: f64,
    /// The seed of the jitter.
    pub seed: u64,
    /// How often the item that has been ready for longest is handed out next, to prevent starvation. Every 64th time by
    /// default; `None` for strict priorities.
    pub oldest_every: Option<NonZeroU32>,
}

impl<T> Default for Options<T> {
    fn default() -> Self {
        Self {
            backoff: Backoff::default(),
            rate_limit: None,
            rate_limiter: None,
            jitter: 0.0,
            seed: 0,
            oldest_every: NonZeroU32::new(64),
        }
    }
}

/// An item that was handed out. It runs until [`Queue::done`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Taken<T, C = ()> {
    /// The item.
    pub item: T,
    /// The highest priority of its adds.
    pub priority: i32,
    /// How long it was ready: since the add, or since the end of its delay.
    pub waited: Duration,
    /// The number of failures since it was last forgotten.
    pub retries: u32,
    /// Why it was added.
    pub causes: Causes<C>,
}

/// The queue as a state machine. See the [module](self) for its properties.
///
/// `C` is the cause of an add; the queue only stores it.
///
/// ```
/// use std::time::Duration;
/// use kubewright_runtime::Key;
/// use kubewright_runtime::queue::{DEFAULT_PRIORITY, LOW_PRIORITY, Options, Queue};
///
/// let mut queue = Queue::new(Options::default());
/// let now = Duration::ZERO;
/// let (web, db) = (Key::namespaced("default", "web"), Key::namespaced("default", "db"));
/// queue.add(web.clone(), LOW_PRIORITY, "first list", now);
/// queue.add(db.clone(), DEFAULT_PRIORITY, "changed", now);
///
/// let first = queue.next(now).unwrap();
/// assert_eq!(first.item, db);
/// // The item is added while it runs, so it runs once more.
/// queue.add(db.clone(), DEFAULT_PRIORITY, "changed", now);
/// assert_eq!(queue.next(now).unwrap().item, web);
/// assert_eq!(queue.next(now), None);
/// queue.done(&db, now);
/// assert_eq!(queue.next(now).unwrap().item, db);
/// ```
pub struct Queue<T: Item, C = ()> {
    options: Options<T>,
    bucket: Option<Bucket>,
    limiter: Option<Box<dyn RateLimiter<T>>>,
    rng: fastrand::Rng,
    /// The items that wait, run, are held or have failures.
    slots: Slab<Slot<T, C>>,
    /// The slots by the hashes of their items. Its order is never visible.
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
    bands: PriorityBands<T::Group>,
    /// The ready slots, the longest ready first.
    ready: List,
    /// The running slots, the longest running first.
    running: List,
    running_count: usize,
    held: List,
    held_count: usize,
    delayed: BTreeMap<Due, u32>,
    /// The sequence number of the next delayed item.
    next_number: u64,
    /// The number of items handed out since the last one that was chosen by age.
    turns: u32,
    counts: Counts,
    closed: bool,
}

impl<T: Item, C: PartialEq> Queue<T, C> {
    /// Creates an empty queue.
    pub fn new(options: Options<T>) -> Self {
        Self {
            bucket: options.rate_limit.map(Bucket::new),
            limiter: options.rate_limiter.as_ref().map(Limiter::start),
            rng: fastrand::Rng::with_seed(options.seed),
            options,
            slots: Slab::new(),
            index: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            bands: PriorityBands::default(),
            ready: List::default(),
            running: List::default(),
            running_count: 0,
            held: List::default(),
            held_count: 0,
            delayed: BTreeMap::new(),
            next_number: 0,
            turns: 0,
            counts: Counts::default(),
            closed: false,
        }
    }

    /// Adds an item to run as soon as possible.
    pub fn add(&mut self, item: T, priority: i32, cause: C, now: Duration) {
        self.add_at(item, priority, cause, nanos(now), nanos(now));
    }

    /// Adds an item to run after a delay. An item that already waits runs at the earlier of both times.
    pub fn add_after(&mut self, item: T, priority: i32, cause: C, delay: Duration, now: Duration) {
        let at = nanos(now.saturating_add(delay));
        self.add_at(item, priority, cause, at, nanos(now));
    }

    /// Adds a failed item, counts the failure, and returns the delay.
    pub fn add_rate_limited(&mut self, item: T, priority: i32, cause: C, now: Duration) -> Duration {
        if self.closed {
            return Duration::ZERO;
        }
        let at = self.find_or_insert(item.clone());
        let failures = self.slots[at as usize].failures;
        self.slots[at as usize].failures = failures.saturating_add(1);
        let delay = if let Some(limiter) = &mut self.limiter {
            limiter.when(&item, failures, now)
        } else {
            let shared = self.bucket.as_mut().map_or(0, |bucket| bucket.reserve(nanos(now)));
            self.options.backoff.delay(failures).max(Duration::from_nanos(shared))
        };
        let delay = jittered(delay, self.options.jitter, &mut self.rng);
        self.add_after(item, priority, cause, delay, now);
        delay
    }

    /// Resets the failures of an item after it succeeded or is not retried. Does not remove it from the queue.
    pub fn forget(&mut self, item: &T) {
        if let Some(limiter) = &mut self.limiter {
            limiter.forget(item);
        }
        if let Some(at) = self.find(item) {
            self.slots[at as usize].failures = 0;
            self.drop_if_unknown(at);
        }
    }

    /// The number of failures of an item since it was last forgotten.
    pub fn retries(&self, item: &T) -> u32 {
        self.find(item).map_or(0, |at| self.slots[at as usize].failures)
    }

    /// Hands out the next item, if one is ready.
    pub fn next(&mut self, now: Duration) -> Option<Taken<T, C>> {
        self.advance(now);
        let oldest = self.ready.first()?;
        self.turns = self.turns.saturating_add(1);
        let at = if self.options.oldest_every.is_some_and(|every| self.turns >= every.get()) {
            self.turns = 0;
            oldest
        } else {
            self.bands.turn()?
        };
        self.bands.remove(&mut self.slots, at);
        self.bands.count_out(self.slots[at as usize].priority);
        self.ready.remove(&mut self.slots, at, Slot::in_order);
        self.running.push_back(&mut self.slots, at, Slot::in_order);
        self.running_count += 1;
        let slot = &mut self.slots[at as usize];
        slot.state = State::Running;
        slot.started = nanos(now);
        Some(Taken {
            item: slot.item.clone(),
            priority: slot.priority,
            waited: Duration::from_nanos(slot.started.saturating_sub(slot.since)),
            retries: slot.failures,
            causes: std::mem::take(&mut slot.causes),
        })
    }

    /// When the next delayed item becomes ready.
    pub fn next_at(&self) -> Option<Duration> {
        self.delayed.first_key_value().map(|(due, _)| Duration::from_nanos(due.at))
    }

    /// Makes delayed items ready whose time has come. Every method with `now` does this itself.
    pub fn advance(&mut self, now: Duration) {
        let now = nanos(now);
        while let Some(due) = self.delayed.first_entry().filter(|due| due.key().at <= now) {
            let (Due { at: since, .. }, at) = due.remove_entry();
            self.now_due(at, since);
        }
    }

    /// Ends the run of an item, and returns how long it ran. If it was added during the run, it waits again. Does
    /// nothing if the item does not run.
    pub fn done(&mut self, item: &T, now: Duration) -> Option<Duration> {
        self.advance(now);
        let at = self.find(item)?;
        let slot = &mut self.slots[at as usize];
        let next = match slot.state {
            State::Running => State::Known,
            State::RunningAgain => State::Ready,
            State::RunningDelayed(due) => State::Delayed(due),
            State::Known | State::Delayed(_) | State::Ready | State::Held => return None,
        };
        slot.state = next;
        let ran = nanos(now).saturating_sub(slot.started);
        self.running.remove(&mut self.slots, at, Slot::in_order);
        self.running_count -= 1;
        if next == State::Ready {
            self.line_up(at, End::Back);
        }
        self.drop_if_unknown(at);
        Some(Duration::from_nanos(ran))
    }

    /// Reverts the adds since an item was handed out, but keeps their causes. Another add must follow before
    /// [`done`](Self::done). Returns false if the item does not run, or would not run again immediately.
    pub fn retract(&mut self, item: &T) -> bool {
        let Some(at) = self.find(item) else { return false };
        let slot = &mut self.slots[at as usize];
        if slot.state != State::RunningAgain {
            return false;
        }
        slot.state = State::Running;
        self.bands.count_out(slot.priority);
        true
    }

    /// Gives back an item that was handed out too early. It is not handed out again before [`release`](Self::release),
    /// which must follow; adds are merged into it until then. Returns false if the item does not run.
    pub fn hold(&mut self, taken: Taken<T, C>) -> bool {
        let Some(at) = self.find(&taken.item) else { return false };
        let slot = &mut self.slots[at as usize];
        let mut causes = taken.causes;
        let mut priority = taken.priority;
        match slot.state {
            State::Running => {}
            State::RunningAgain => {
                self.bands.count_out(slot.priority);
                priority = priority.max(slot.priority);
            }
            State::RunningDelayed(due) => {
                self.delayed.remove(&due);
                priority = priority.max(slot.priority);
            }
            State::Known | State::Delayed(_) | State::Ready | State::Held => return false,
        }
        causes.merge(std::mem::take(&mut slot.causes));
        slot.causes = causes;
        slot.priority = priority;
        slot.since = slot.started.saturating_sub(nanos(taken.waited));
        slot.state = State::Held;
        self.running.remove(&mut self.slots, at, Slot::in_order);
        self.running_count -= 1;
        if self.closed {
            self.slots[at as usize].state = State::Known;
            self.drop_if_unknown(at);
        } else {
            self.held.push_back(&mut self.slots, at, Slot::in_order);
            self.held_count += 1;
        }
        true
    }

    /// Makes a held item ready, at the front of its group. Returns false if it is not held.
    pub fn release(&mut self, item: &T, now: Duration) -> bool {
        self.advance(now);
        let Some(at) = self.find(item) else { return false };
        let slot = &mut self.slots[at as usize];
        if slot.state != State::Held {
            return false;
        }
        slot.state = State::Ready;
        self.bands.count_in(slot.priority);
        self.held.remove(&mut self.slots, at, Slot::in_order);
        self.held_count -= 1;
        self.line_up(at, End::Front);
        true
    }

    /// Closes the queue: drops waiting, delayed and held items and all failures, and accepts and hands out nothing
    /// more. Running items can still be [`done`](Self::done).
    pub fn close(&mut self) {
        if std::mem::replace(&mut self.closed, true) {
            return;
        }
        self.bands = PriorityBands::default();
        self.ready = List::default();
        self.held = List::default();
        self.held_count = 0;
        self.delayed = BTreeMap::new();
        self.slots.retain(|at, slot| match slot.state {
            State::Running | State::RunningAgain | State::RunningDelayed(_) => {
                slot.state = State::Running;
                slot.causes = Causes::default();
                slot.failures = 0;
                true
            }
            State::Known | State::Delayed(_) | State::Ready | State::Held => {
                unlist(&mut self.index, slot.hash, number(at));
                false
            }
        });
    }

    fn add_at(&mut self, item: T, priority: i32, cause: C, due: u64, now: u64) {
        if self.closed {
            return;
        }
        self.advance(Duration::from_nanos(now));
        if due > now {
            self.counts.retries += 1;
        }
        let at = self.find_or_insert(item);
        let slot = &mut self.slots[at as usize];
        // A waiting item keeps its priority unless the new one is higher. Nothing waits in `Known` and `Running`.
        let raised = slot.priority.max(priority);
        let (priority, waits_until) = match slot.state {
            State::Known | State::Running => (priority, None),
            State::Delayed(due) | State::RunningDelayed(due) => (raised, Some(due)),
            State::Ready if raised > slot.priority => {
                slot.causes.push(cause);
                return self.raise(at, raised);
            }
            State::RunningAgain if raised > slot.priority => {
                slot.causes.push(cause);
                self.bands.count_out(slot.priority);
                slot.priority = raised;
                return self.bands.count_in(raised);
            }
            State::Ready | State::RunningAgain | State::Held => {
                slot.causes.push(cause);
                slot.priority = raised;
                return;
            }
        };
        slot.causes.push(cause);
        slot.priority = priority;
        if let Some(waits_until) = waits_until {
            if waits_until.at <= due {
                return;
            }
            self.delayed.remove(&waits_until);
        }
        if due <= now {
            return self.now_due(at, now);
        }
        let due = Due { at: due, number: self.next_number };
        self.next_number += 1;
        self.delayed.insert(due, at);
        slot.state = match slot.state {
            State::Running | State::RunningDelayed(_) => State::RunningDelayed(due),
            _ => State::Delayed(due),
        };
    }

    fn find(&self, item: &T) -> Option<u32> {
        let hash = self.hasher.hash_one(item);
        self.index.find(hash, |&at| self.slots[at as usize].item == *item).copied()
    }

    /// The slot of an item, created if needed.
    fn find_or_insert(&mut self, item: T) -> u32 {
        let Self { slots, index, hasher, .. } = self;
        let hash = hasher.hash_one(&item);
        match index.entry(hash, |&at| slots[at as usize].item == item, |&at| slots[at as usize].hash) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => *new.insert(number(slots.insert(Slot::new(item, hash)))).get(),
        }
    }

    /// Makes an item ready, or marks it to run again if it runs.
    fn now_due(&mut self, at: u32, since: u64) {
        self.counts.adds += 1;
        let slot = &mut self.slots[at as usize];
        slot.since = since;
        self.bands.count_in(slot.priority);
        match slot.state {
            State::Running | State::RunningDelayed(_) => slot.state = State::RunningAgain,
            _ => {
                slot.state = State::Ready;
                self.line_up(at, End::Back);
            }
        }
    }

    fn line_up(&mut self, at: u32, end: End) {
        let group = self.slots[at as usize].item.group();
        self.bands.push(&mut self.slots, at, group, end);
        self.ready.push_back(&mut self.slots, at, Slot::in_order);
    }

    /// Moves a ready slot to a higher priority. It keeps its age.
    fn raise(&mut self, at: u32, priority: i32) {
        self.bands.remove(&mut self.slots, at);
        let slot = &mut self.slots[at as usize];
        self.bands.count_out(slot.priority);
        self.bands.count_in(priority);
        slot.priority = priority;
        let group = slot.item.group();
        self.bands.push(&mut self.slots, at, group, End::Back);
    }

    /// Frees the slot of an item that neither waits nor runs nor has failures.
    fn drop_if_unknown(&mut self, at: u32) {
        let slot = &self.slots[at as usize];
        if slot.state == State::Known && slot.failures == 0 {
            let hash = self.slots.remove(at as usize).hash;
            unlist(&mut self.index, hash, at);
            self.give_back();
        }
    }

    /// Frees the memory of a large burst, such as the first list.
    fn give_back(&mut self) {
        if self.slots.is_empty() && self.slots.capacity() > SPARE {
            self.slots = Slab::new();
            self.index = HashTable::new();
        }
    }
}

/// Removes a slot from the index.
fn unlist(index: &mut HashTable<u32>, hash: u64, at: u32) {
    if let Ok(listed) = index.find_entry(hash, |&other| other == at) {
        listed.remove();
    }
}
