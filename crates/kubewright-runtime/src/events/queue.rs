//! The bounded queue between recorders and the broadcaster. Adding never blocks.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

use super::occurrence::Occurrence;

/// The capacity of client-go's broadcaster. The broadcaster drains the queue even while the server hangs, so it fills
/// up only before the start or when the process is stuck.
pub(super) const CAPACITY: usize = 1000;

#[derive(Default)]
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    filled: Notify,
}

#[derive(Default)]
struct Waiting {
    occurrences: VecDeque<Occurrence>,
    dropped: u64,
    closed: bool,
}

impl Queue {
    /// Adds an event; drops the oldest one if the queue is full.
    pub(super) fn push(&self, occurrence: Occurrence) {
        {
            let mut waiting = self.lock();
            if waiting.closed {
                return;
            }
            if waiting.occurrences.len() >= CAPACITY {
                waiting.occurrences.pop_front();
                waiting.dropped += 1;
            }
            waiting.occurrences.push_back(occurrence);
        }
        self.filled.notify_one();
    }

    /// Takes all events, and the number dropped since the last call.
    pub(super) fn take(&self) -> (VecDeque<Occurrence>, u64) {
        let mut waiting = self.lock();
        (std::mem::take(&mut waiting.occurrences), std::mem::take(&mut waiting.dropped))
    }

    /// Waits until an event was added since the last call.
    pub(super) async fn filled(&self) {
        self.filled.notified().await;
    }

    /// Discards all further events.
    pub(super) fn close(&self) {
        self.lock().closed = true;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        // No code panics while it holds the lock.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
