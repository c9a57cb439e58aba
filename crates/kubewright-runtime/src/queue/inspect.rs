//! Read access to a queue, for metrics and debug pages.
//!
//! The order of listed items is deterministic.

use std::time::Duration;

use super::Queue;
use super::causes::Causes;
use super::item::Item;
use super::slot::{Slot, State};

/// Totals since the queue was created.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// The number of adds that made an item wait for a worker. As in client-go, merged adds do not count, and delayed
    /// ones count when their time comes.
    pub adds: u64,
    /// The number of delayed adds.
    pub retries: u64,
}

/// A waiting item.
#[derive(Debug)]
#[non_exhaustive]
pub struct Waiting<'a, T, C> {
    /// The item.
    pub item: &'a T,
    /// What it waits for.
    pub waits_for: WaitsFor,
    /// The highest priority of its adds.
    pub priority: i32,
    /// The number of failures since it was last forgotten.
    pub retries: u32,
    /// Why it was added.
    pub causes: &'a Causes<C>,
}

/// What an item waits for. The times are on the caller's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaitsFor {
    /// A worker, since this time.
    Worker(Duration),
    /// The end of its own run, since this time.
    Done(Duration),
    /// The end of its delay.
    Time(Duration),
    /// Its release. It first became ready at this time.
    Release(Duration),
}

/// A running item.
#[derive(Debug)]
#[non_exhaustive]
pub struct Running<'a, T> {
    /// The item.
    pub item: &'a T,
    /// When it was handed out.
    pub since: Duration,
}

impl<T: Item, C> Queue<T, C> {
    /// The number of items that wait for a worker or for the end of their own run, without delayed and held ones.
    pub fn len(&self) -> usize {
        self.bands.waiting()
    }

    /// Whether no item waits. Delayed and held ones do not count.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of ready items.
    pub fn ready(&self) -> usize {
        self.bands.ready()
    }

    /// The number of delayed items.
    pub fn delayed(&self) -> usize {
        self.delayed.len()
    }

    /// The number of held items.
    pub fn held(&self) -> usize {
        self.held_count
    }

    /// Whether no item waits, runs or is held. There may be delayed items.
    pub fn is_idle(&self) -> bool {
        self.is_empty() && self.running_count == 0 && self.held_count == 0
    }

    /// Whether the queue was closed.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// The number of waiting items of each priority, as in [`len`](Self::len), the highest priority first. Recently
    /// used priorities may be listed with 0.
    pub fn depth(&self) -> impl Iterator<Item = (i32, usize)> {
        self.bands.depth()
    }

    /// Totals since the queue was created.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The running items, the longest running first.
    pub fn running(&self) -> impl Iterator<Item = Running<'_, T>> {
        let running = self.running.iter(&self.slots, |slot| slot.in_order);
        running.map(|slot| Running { item: &slot.item, since: Duration::from_nanos(slot.started) })
    }

    /// The waiting items, including delayed and held ones: first ready items by age, then items that wait for their own
    /// run, then held ones, then delayed ones by time.
    pub fn waiting(&self) -> impl Iterator<Item = Waiting<'_, T, C>> {
        let ready = self.ready.iter(&self.slots, |slot| slot.in_order);
        let again = self.running.iter(&self.slots, |slot| slot.in_order);
        let held = self.held.iter(&self.slots, |slot| slot.in_order);
        let delayed = self.delayed.values().map(|&at| &self.slots[at as usize]);
        let again = again.filter(|slot| slot.state == State::RunningAgain);
        ready.chain(again).chain(held).chain(delayed).filter_map(Slot::waiting)
    }

    /// How long the running items have been running, in total and the longest. Takes time proportional to their number.
    pub fn unfinished(&self, now: Duration) -> (Duration, Duration) {
        let ages = self.running().map(|running| now.saturating_sub(running.since));
        ages.fold(Default::default(), |(sum, longest): (Duration, Duration), age| {
            (sum.saturating_add(age), longest.max(age))
        })
    }
}

impl<T, C> Slot<T, C> {
    fn waiting(&self) -> Option<Waiting<'_, T, C>> {
        let since = Duration::from_nanos(self.since);
        let waits_for = match self.state {
            State::Known | State::Running => return None,
            State::Ready => WaitsFor::Worker(since),
            State::RunningAgain => WaitsFor::Done(since),
            State::Held => WaitsFor::Release(since),
            State::Delayed(due) | State::RunningDelayed(due) => WaitsFor::Time(Duration::from_nanos(due.at)),
        };
        let Self { item, priority, failures, causes, .. } = self;
        Some(Waiting { item, waits_for, priority: *priority, retries: *failures, causes })
    }
}
