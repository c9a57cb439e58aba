//! The state of one item in the queue.
//!
//! Owns [`Slot`] and [`State`]. The state determines which lists and sets contain a slot; only [`Queue`](super::Queue)
//! changes it.

use super::causes::Causes;
use super::list::Links;

pub(super) struct Slot<T, C> {
    pub(super) item: T,
    /// The hash of the item, stored so that the index can grow without rehashing.
    pub(super) hash: u64,
    pub(super) state: State,
    /// The highest priority of the waiting adds.
    pub(super) priority: i32,
    /// The causes of the waiting adds.
    pub(super) causes: Causes<C>,
    /// When the waiting add became ready.
    pub(super) since: u64,
    /// When it was handed out, while it runs.
    pub(super) started: u64,
    /// The number of failures since it was last forgotten.
    pub(super) failures: u32,
    /// The FIFO that contains it, while it is ready.
    pub(super) line: u32,
    pub(super) in_line: Links,
    /// Its neighbours in the list of ready, running or held slots.
    pub(super) in_order: Links,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Neither waits nor runs; only its failures are stored.
    Known,
    /// Waits for the end of its delay.
    Delayed(Due),
    /// Waits for a worker.
    Ready,
    /// Handed out.
    Running,
    /// Handed out, and to run again.
    RunningAgain,
    /// Handed out, and to run again at a later time.
    RunningDelayed(Due),
    /// Handed out and given back until it is released. In no FIFO.
    Held,
}

/// The order of delayed items. The sequence number makes equal times first in, first out.
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
    fn a_waiting_key_with_an_eight_byte_cause_takes_less_than_150_bytes() {
        // The index adds 5 bytes and a delay 20. All grow by doubling.
        assert!(size_of::<Slot<Key, u64>>() < 150, "{}", size_of::<Slot<Key, u64>>());
    }
}
