//! What the queue knows of one item.
//!
//! Owns [`Slot`] and [`State`]. The state alone says in which lists and sets a slot is; only
//! [`Queue`](super::Queue) changes it.

use super::causes::Causes;
use super::list::Links;

pub(super) struct Slot<T, C> {
    pub(super) item: T,
    /// Of the item. Kept so that the index can grow without a look at every text.
    pub(super) hash: u64,
    pub(super) state: State,
    /// Of the add that waits; the highest of those that were merged.
    pub(super) priority: i32,
    /// Of the add that waits.
    pub(super) causes: Causes<C>,
    /// When the add that waits was due.
    pub(super) since: u64,
    /// When it was handed out, while it runs.
    pub(super) started: u64,
    /// How often it failed since it was last forgotten.
    pub(super) failures: u32,
    /// The line that it is in, while it is ready.
    pub(super) line: u32,
    pub(super) in_line: Links,
    /// Its neighbours among those that are ready, that run, or that are held.
    pub(super) in_order: Links,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Neither waits nor runs; its failures are remembered.
    Known,
    /// Waits for its time.
    Delayed(Due),
    /// In line.
    Ready,
    /// Handed out.
    Running,
    /// Handed out, and to run once more.
    RunningAgain,
    /// Handed out, and to run once more at a time.
    RunningDelayed(Due),
    /// Handed out and given back until something happens. Waits, but in no line.
    Held,
}

/// The place of an item among those that wait for their time; the number keeps first come, first served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Due {
    pub(super) at: u64,
    pub(super) number: u64,
}

impl<T, C> Slot<T, C> {
    pub(super) fn new(item: T, hash: u64) -> Self {
        Self {
            item,
            hash,
            state: State::Known,
            priority: 0,
            causes: Causes::default(),
            since: 0,
            started: 0,
            failures: 0,
            line: 0,
            in_line: Links::default(),
            in_order: Links::default(),
        }
    }

    pub(super) fn in_line(&mut self) -> &mut Links {
        &mut self.in_line
    }

    pub(super) fn in_order(&mut self) -> &mut Links {
        &mut self.in_order
    }
}

#[cfg(test)]
mod tests {
    use super::Slot;
    use crate::Key;

    #[test]
    fn a_waiting_key_with_a_cause_of_a_word_takes_less_than_150_bytes() {
        // The index adds 5 bytes, a delay 20; all grow by doubling.
        assert!(size_of::<Slot<Key, u64>>() < 150, "{}", size_of::<Slot<Key, u64>>());
    }
}
