//! Compaction by time: lists at an old revision expire.
//!
//! kube-apiserver compacts etcd every five minutes, each time to the revision of the time before. A list at an exact
//! revision, and so a continue token, works for one interval and for at most two. Watches are not affected: how far
//! back they reach is limited by the number of events. Nothing is removed here, and nothing runs in the background:
//! each request brings the state up to date, and only requests write.

use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use crate::storage::Revision;

/// Which revisions can still be listed.
#[derive(Debug)]
pub(crate) struct Compaction {
    /// Microseconds between two compactions; 0 is never.
    interval: i64,
    /// When the next one is due, in microseconds since 1970.
    due: AtomicI64,
    /// The revision at the last compaction, to which the next one compacts.
    last: Mutex<Revision>,
    compacted: AtomicU64,
}

impl Compaction {
    pub(crate) fn new(interval: Duration, now: i64) -> Self {
        let interval = i64::try_from(interval.as_micros()).unwrap_or(i64::MAX);
        let due = AtomicI64::new(now.saturating_add(interval));
        Self { interval, due, last: Mutex::default(), compacted: AtomicU64::default() }
    }

    /// Compacts if that is due. `revision` is that of the last change before `now`, in microseconds since 1970.
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
        // Nothing was written between two compactions without a request.
        let to = if missed > 0 { revision } else { *last };
        self.compacted.fetch_max(to, Ordering::AcqRel);
        *last = revision;
        self.due.store(due.saturating_add((missed + 1).saturating_mul(self.interval)), Ordering::Release);
    }

    /// Whether a list at a revision is gone.
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
    fn a_revision_lives_for_one_interval_and_at_most_two() {
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
    fn compactions_without_a_request_between_them_reach_the_last_change() {
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
