//! The writes of reconciles that the cache has not seen yet, by key.
//!
//! Invariant: a key whose writes the cache has seen uses no memory here, also if it never runs again.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::Key;
use crate::client::write_tracker::Pending;

/// The writes that the cache had not seen when their reconcile ended, by key.
#[derive(Default)]
pub(super) struct PendingWrites(Mutex<Outstanding>);

#[derive(Default)]
struct Outstanding {
    by_key: HashMap<Key, Vec<Pending>>,
    /// How many keys there may be before those are removed whose writes were seen meanwhile.
    sweep_at: usize,
}

/// Below this many keys it is not worth to look.
const SWEEP_FROM: usize = 1024;

impl PendingWrites {
    /// The writes that the cache must see before a key may run.
    pub(super) fn take(&self, key: &Key) -> Option<Vec<Pending>> {
        let mut pending = self.lock().by_key.remove(key)?;
        pending.retain(|write| !write.is_seen());
        (!pending.is_empty()).then_some(pending)
    }

    /// Notes the writes of a reconcile.
    pub(super) fn put(&self, key: &Key, pending: Vec<Pending>) {
        if pending.is_empty() {
            return;
        }
        let mut outstanding = self.lock();
        outstanding.by_key.insert(key.clone(), pending);
        // A key that never runs again, because a predicate drops the events of its writes, must not stay for ever.
        if outstanding.by_key.len() >= outstanding.sweep_at.max(SWEEP_FROM) {
            outstanding.by_key.retain(|_, pending| pending.iter().any(|write| !write.is_seen()));
            outstanding.sweep_at = 2 * outstanding.by_key.len();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Outstanding> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
