//! Compaction by time: lists at an old revision expire.
//!
//! kube-apiserver compacts etcd every five minutes, each time to the revision of the previous run. A list at
//! an exact revision, and so a continue token, is valid for at least one interval and at most two. Watches
//! are not affected: their history is limited by the number of events. This module only computes the
//! compacted revision; it removes nothing and has no background task: each request brings it up to date, and
//! only requests write.

use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use crate::storage::Revision;

/// The revision below which lists have expired.
#[derive(Debug)]
pub(crate) struct Compaction {
    /// Microseconds between two compactions; 0 disables compaction.
    interval: i64,
    /// Time of the next compaction, in microseconds since the Unix epoch.
    due: AtomicI64,
    /// The revision at the last compaction; the next one compacts to it.
    last: Mutex<Revision>,
    compacted: AtomicU64,
}

impl Compaction {
    pub(crate) fn new(interval: Duration, now: i64) -> Self {
        let interval = i64::try_from(interval.as_micros()).unwrap_or(i64::MAX);
        let due = AtomicI64::new(now.saturating_add(interval));
        Self { interval, due, last: Mutex::default(), compacted: AtomicU64::default() }
    }

    /// Compacts if it is due at `now`, in microseconds since the Unix epoch. `revision` is the current
    /// revision.
    pub(crate) fn advance(&self, now: i64, revision: Revision) {
        if self.interval == 0 || now < self.due.load(Ordering::Acquire) {
            return;
        }
        let mut last = self.last.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let due = self.due.load(Ordering::Acquire);
        if now < due {
            return;
        }
        let missed = (now - due) / self.interval;
        // If several intervals passed without a request, nothing was written during them.
        let to = if missed > 0 { revision } else { *last };
        self.compacted.fetch_max(to, Ordering::AcqRel);
        *last = revision;
        self.due.store(due.saturating_add((missed + 1).saturating_mul(self.interval)), Ordering::Release);
    }

    /// Whether a revision can no longer be listed.
    pub(crate) fn is_compacted(&self, revision: Revision) -> bool {
        revision < self.compacted.load(Ordering::Acquire)
    }

    pub(crate) fn fork(&self) -> Self {
        let last = self.last.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        Self {
            interval: self.interval,
            due: AtomicI64::new(self.due.load(Ordering::Acquire)),
            last: Mutex::new(*last),
            compacted: AtomicU64::new(self.compacted.load(Ordering::Acquire)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_expires_after_one_to_two_intervals() {
        let compaction = Compaction::new(Duration::from_micros(10), 0);
        compaction.advance(9, 5);
        assert!(!compaction.is_compacted(1));
        compaction.advance(10, 7);
        assert!(!compaction.is_compacted(1));
        compaction.advance(19, 9);
        assert!(!compaction.is_compacted(6));
        compaction.advance(20, 9);
        assert!(compaction.is_compacted(6));
        assert!(!compaction.is_compacted(7));
        assert!(compaction.fork().is_compacted(6));
    }

    #[test]
    fn missed_compactions_compact_to_the_last_change() {
        let compaction = Compaction::new(Duration::from_micros(10), 0);
        compaction.advance(35, 9);
        assert!(compaction.is_compacted(8));
        assert!(!compaction.is_compacted(9));
        compaction.advance(40, 12);
        assert!(!compaction.is_compacted(9));
    }

    #[test]
    fn an_interval_of_zero_never_compacts() {
        let compaction = Compaction::new(Duration::ZERO, 0);
        compaction.advance(i64::MAX, 9);
        assert!(!compaction.is_compacted(1));
    }
}
