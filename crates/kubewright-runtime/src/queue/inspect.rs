//! Looking into a queue without changing it, for metrics and debug pages.
//!
//! What is listed is listed in an order that the calls alone decide, never a hash.

use std::time::Duration;

use super::Queue;
use super::causes::Causes;
use super::item::Item;
use super::slot::{Slot, State};

/// What happened since the beginning.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// How many adds made an item wait for a worker; those that were merged into one that waited are not counted,
    /// and delayed ones when their time comes. client-go counts the same.
    pub adds: u64,
    /// How many adds were for later.
    pub retries: u64,
}

/// An item that waits.
#[derive(Debug)]
pub struct Waiting<'a, T, C> {
    /// The item.
    pub item: &'a T,
    /// What it waits for.
    pub waits_for: WaitsFor,
    /// The highest priority with which it was added.
    pub priority: i32,
    /// How often it failed since it was last forgotten.
    pub retries: u32,
    /// Why it was added.
    pub causes: &'a Causes<C>,
}

/// What an item waits for. The times are on the caller's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitsFor {
    /// A worker, since then.
    Worker(Duration),
    /// The end of its own run, since then.
    Done(Duration),
    /// Its time.
    Time(Duration),
    /// Its release. It was first due then.
    Release(Duration),
}

/// An item that runs.
#[derive(Debug)]
pub struct Running<'a, T> {
    /// The item.
    pub item: &'a T,
    /// When it was handed out.
    pub since: Duration,
}

impl<T: Item, C> Queue<T, C> {
    /// How many items wait for a worker, or for the end of their own run. Delayed ones and held ones are not counted.
    pub fn len(&self) -> usize {
        self.bands.waiting()
    }

    /// Whether no item waits. Delayed ones and held ones are not counted.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many items could be handed out now.
    pub fn ready(&self) -> usize {
        self.bands.ready()
    }

    /// How many items wait for their time.
    pub fn delayed(&self) -> usize {
        self.delayed.len()
    }

    /// How many items are held.
    pub fn held(&self) -> usize {
        self.held_count
    }

    /// Whether nothing waits, runs or is held now. There may be delayed items.
    pub fn is_idle(&self) -> bool {
        self.is_empty() && self.running_count == 0 && self.held_count == 0
    }

    /// Whether the queue was closed.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// How many items of each priority wait as [`len`](Self::len) counts them, the highest priority first. A priority
    /// that was used lately may be listed with none.
    pub fn depth(&self) -> impl Iterator<Item = (i32, usize)> {
        self.bands.depth()
    }

    /// What happened since the beginning.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The items that run, the longest running first.
    pub fn running(&self) -> impl Iterator<Item = Running<'_, T>> {
        let running = self.running.iter(&self.slots, |slot| slot.in_order);
        running.map(|slot| Running { item: &slot.item, since: Duration::from_nanos(slot.started) })
    }

    /// The items that wait, delayed and held ones among them: by when they became ready, then by start of the run
    /// that they wait for, then held ones, then by the time that they wait for.
    pub fn waiting(&self) -> impl Iterator<Item = Waiting<'_, T, C>> {
        let ready = self.ready.iter(&self.slots, |slot| slot.in_order);
        let again = self.running.iter(&self.slots, |slot| slot.in_order);
        let held = self.held.iter(&self.slots, |slot| slot.in_order);
        let delayed = self.delayed.values().map(|&at| &self.slots[at as usize]);
        let again = again.filter(|slot| slot.state == State::RunningAgain);
        ready.chain(again).chain(held).chain(delayed).filter_map(Slot::waiting)
    }

    /// How long the items that run have been running: all together, and the longest. Takes time by their number.
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
