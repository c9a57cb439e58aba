//! The order of ready items.
//!
//! [`PriorityBands`] has a FIFO per priority and group. The highest priority goes first; within a priority the groups
//! take turns; within a group items are first in, first out. All operations take constant time except for finding a
//! priority, of which there are few. It does not know the time.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hash};

use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashTable};
use slab::Slab;

use super::list::{Links, List, number};
use super::slot::Slot;

/// The number of empty priorities to keep. Most queues use two, and recreating them for each item would be expensive; a
/// caller with arbitrary priorities must not fill the memory.
const REMEMBERED: usize = 8;

pub(super) struct PriorityBands<G> {
    bands: BTreeMap<Reverse<i32>, Band<G>>,
    hasher: DefaultHashBuilder,
    ready: usize,
    waiting: usize,
}

/// All items of one priority.
struct Band<G> {
    lines: Slab<Line<G>>,
    /// The FIFOs by the hashes of their groups. Its order is never visible.
    index: HashTable<u32>,
    /// The FIFOs that are not empty, the next one first.
    ring: List,
    /// The number of waiting items of this priority, including those that are not ready.
    waiting: usize,
}

/// The FIFO of one group and priority. Never empty.
struct Line<G> {
    group: G,
    /// The hash of the group.
    hash: u64,
    items: List,
    in_ring: Links,
}

/// The end of a FIFO to insert at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Front,
    Back,
}

impl<G> Default for PriorityBands<G> {
    fn default() -> Self {
        Self { bands: BTreeMap::new(), hasher: DefaultHashBuilder::default(), ready: 0, waiting: 0 }
    }
}

impl<G: Eq + Hash> PriorityBands<G> {
    /// The number of ready items.
    pub(super) fn ready(&self) -> usize {
        self.ready
    }

    /// The number of waiting items.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// The number of waiting items by priority, the highest first.
    pub(super) fn depth(&self) -> impl Iterator<Item = (i32, usize)> {
        self.bands.iter().map(|(priority, band)| (priority.0, band.waiting))
    }

    /// Counts a waiting item, ready or not.
    pub(super) fn count_in(&mut self, priority: i32) {
        self.band(priority).waiting += 1;
        self.waiting += 1;
    }

    /// Stops counting an item that no longer waits.
    pub(super) fn count_out(&mut self, priority: i32) {
        let band = self.band(priority);
        band.waiting -= 1;
        let forget = band.waiting == 0;
        self.waiting -= 1;
        if forget && self.bands.len() > REMEMBERED {
            self.bands.remove(&Reverse(priority));
        }
    }

    /// Inserts a slot into the FIFO of its priority and group.
    pub(super) fn push<T, C>(&mut self, slots: &mut Slab<Slot<T, C>>, at: u32, group: G, end: End) {
        self.ready += 1;
        let hash = self.hasher.hash_one(&group);
        let Band { lines, index, ring, .. } = self.band(slots[at as usize].priority);
        let known = |&line: &u32| lines[line as usize].group == group;
        let line = match index.entry(hash, known, |&line| lines[line as usize].hash) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                let empty = Line { group, hash, items: List::default(), in_ring: Links::default() };
                let line = number(lines.insert(empty));
                ring.push_back(lines, line, |line| &mut line.in_ring);
                *new.insert(line).get()
            }
        };
        slots[at as usize].line = line;
        let items = &mut lines[line as usize].items;
        match end {
            End::Front => items.push_front(slots, at, Slot::in_line),
            End::Back => items.push_back(slots, at, Slot::in_line),
        }
    }

    /// Removes a slot from its FIFO.
    pub(super) fn remove<T, C>(&mut self, slots: &mut Slab<Slot<T, C>>, at: u32) {
        self.ready -= 1;
        let Slot { priority, line, .. } = slots[at as usize];
        let band = self.band(priority);
        let items = &mut band.lines[line as usize].items;
        items.remove(slots, at, Slot::in_line);
        if items.first().is_none() {
            band.ring.remove(&mut band.lines, line, |line| &mut line.in_ring);
            let hash = band.lines.remove(line as usize).hash;
            if let Ok(listed) = band.index.find_entry(hash, |&other| other == line) {
                listed.remove();
            }
        }
    }

    /// The next slot. Moves its group to the end of the ring, so the caller must [`remove`](Self::remove) the slot.
    pub(super) fn turn(&mut self) -> Option<u32> {
        let (band, line) =
            self.bands.values_mut().find_map(|band| band.ring.first().map(|line| (band, line)))?;
        band.ring.remove(&mut band.lines, line, |line| &mut line.in_ring);
        band.ring.push_back(&mut band.lines, line, |line| &mut line.in_ring);
        band.lines[line as usize].items.first()
    }

    fn band(&mut self, priority: i32) -> &mut Band<G> {
        self.bands.entry(Reverse(priority)).or_insert_with(|| Band {
            lines: Slab::new(),
            index: HashTable::new(),
            ring: List::default(),
            waiting: 0,
        })
    }
}
