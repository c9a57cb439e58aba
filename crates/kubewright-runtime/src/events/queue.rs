//! The queue between recorders and the broadcaster: short, never full for whoever puts something in.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

use super::occurrence::Occurrence;

/// As many as client-go's broadcaster holds. The broadcaster empties the queue even while the server hangs, so it
/// fills only before the start or when the program itself is stuck.
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
    /// Adds one; drops the oldest if there are too many.
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

    /// All that is there, and how many were dropped since the last time.
    pub(super) fn take(&self) -> (VecDeque<Occurrence>, u64) {
        let mut waiting = self.lock();
        (std::mem::take(&mut waiting.occurrences), std::mem::take(&mut waiting.dropped))
    }

    /// Waits until something was added since the last time.
    pub(super) async fn filled(&self) {
        self.filled.notified().await;
    }

    /// From now on what is added is forgotten: nobody will take it.
    pub(super) fn close(&self) {
        self.lock().closed = true;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        // Nothing in here panics halfway through a change.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
