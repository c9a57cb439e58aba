//! The order of ready items.
//!
//! Owns [`PriorityBands`]: the items that can be handed out, in a line per priority and group. The highest priority goes
//! first; within it the groups stand in a ring and take turns; within a group it is first come, first served.
//! Everything takes constant time but for finding a priority, of which there are few. It knows nothing of time.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hash};

use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashTable};
use slab::Slab;

use super::list::{Links, List, number};
use super::slot::Slot;

/// How many priorities are remembered while nothing waits at them. Most queues know two, and making one anew for
/// each item would cost more than all the rest; but a caller who invents priorities must not fill the memory.
const REMEMBERED: usize = 8;

pub(super) struct PriorityBands<G> {
    bands: BTreeMap<Reverse<i32>, Band<G>>,
    hasher: DefaultHashBuilder,
    ready: usize,
    waiting: usize,
}

/// All of one priority.
struct Band<G> {
    lines: Slab<Line<G>>,
    /// The lines by the hashes of their groups. Its order never shows.
    index: HashTable<u32>,
    /// The lines that are not empty, the one whose turn it is first.
    ring: List,
    /// How many items wait at this priority, those in no line yet among them.
    waiting: usize,
}

/// One group of one priority. Never empty.
struct Line<G> {
    group: G,
    /// Of the group.
    hash: u64,
    items: List,
    in_ring: Links,
}

/// Where to join a line.
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
    /// How many items are in line.
    pub(super) fn ready(&self) -> usize {
        self.ready
    }

    /// How many items were counted in.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// How many items were counted in, by priority, the highest first.
    pub(super) fn depth(&self) -> impl Iterator<Item = (i32, usize)> {
        self.bands.iter().map(|(priority, band)| (priority.0, band.waiting))
    }

    /// Counts an item that waits, in line or not yet.
    pub(super) fn count_in(&mut self, priority: i32) {
        self.band(priority).waiting += 1;
        self.waiting += 1;
    }

    /// Counts an item out that waits no more.
    pub(super) fn count_out(&mut self, priority: i32) {
        let band = self.band(priority);
        band.waiting -= 1;
        let forget = band.waiting == 0;
        self.waiting -= 1;
        if forget && self.bands.len() > REMEMBERED {
            self.bands.remove(&Reverse(priority));
        }
    }

    /// Puts a slot into the line of its priority and group.
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

    /// Takes a slot out of its line.
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

    /// Whose turn it is. The group then goes to the end of the ring, so the caller must [`remove`](Self::remove)
    /// the slot.
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
