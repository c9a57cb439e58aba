//! Writes that the cache has not seen yet, by key.
//!
//! Invariant: writes that the cache has seen are dropped eventually, even if their key never runs again.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::Key;
use crate::client::write_tracker::Pending;

/// Writes that the cache had not seen when their reconcile ended, by key.
#[derive(Default)]
pub(super) struct PendingWrites(Mutex<Outstanding>);

#[derive(Default)]
struct Outstanding {
    by_key: HashMap<Key, Vec<Pending>>,
    /// The number of keys at which the next sweep drops the writes that have been seen.
    sweep_at: usize,
}

/// No sweeps below this number of keys.
const SWEEP_FROM: usize = 1024;

impl PendingWrites {
    /// The writes that the cache must see before a key may run.
    pub(super) fn take(&self, key: &Key) -> Option<Vec<Pending>> {
        let mut pending = self.lock().by_key.remove(key)?;
        pending.retain(|write| !write.is_seen());
        (!pending.is_empty()).then_some(pending)
    }

    /// Adds the writes of a reconcile.
    pub(super) fn put(&self, key: &Key, pending: Vec<Pending>) {
        if pending.is_empty() {
            return;
        }
        let mut outstanding = self.lock();
        outstanding.by_key.insert(key.clone(), pending);
        // A key may never run again, because a predicate drops the events of its writes.
        if outstanding.by_key.len() >= outstanding.sweep_at.max(SWEEP_FROM) {
            outstanding.by_key.retain(|_, pending| pending.iter().any(|write| !write.is_seen()));
            outstanding.sweep_at = 2 * outstanding.by_key.len();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Outstanding> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
