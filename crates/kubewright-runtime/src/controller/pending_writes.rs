//! Writes that the cache has not seen yet, by key.
//!
//! Invariants: writes that the cache has seen are dropped eventually, even if their key never runs again. A key whose
//! write is missing (see [`Pending::missing`]) runs again.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::cause::{Cause, Trigger};
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

    /// Adds the writes of a reconcile. Returns the keys to run again, as [`take_missing`](Self::take_missing) does.
    pub(super) fn put(&self, key: &Key, pending: Vec<Pending>) -> Vec<(Key, Cause)> {
        let mut missing = missing(key, &pending).into_iter().collect();
        if pending.is_empty() {
            return missing;
        }
        let mut outstanding = self.lock();
        outstanding.by_key.insert(key.clone(), pending);
        // A key may never run again, because a predicate drops the events of its writes.
        if outstanding.by_key.len() >= outstanding.sweep_at.max(SWEEP_FROM) {
            missing = outstanding.sweep();
            outstanding.sweep_at = 2 * outstanding.by_key.len();
        }
        missing
    }

    /// Drops the writes that the cache has seen. Returns the keys with a missing write: they must run again, because no
    /// informer has reported the deletion of the written object.
    pub(super) fn take_missing(&self) -> Vec<(Key, Cause)> {
        self.lock().sweep()
    }

    fn lock(&self) -> MutexGuard<'_, Outstanding> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Outstanding {
    fn sweep(&mut self) -> Vec<(Key, Cause)> {
        let mut run_again = Vec::new();
        self.by_key.retain(|key, pending| {
            run_again.extend(missing(key, pending));
            pending.retain(|write| !write.is_seen());
            !pending.is_empty()
        });
        // The map has no order, and the order of runs is part of the trace.
        run_again.sort_by(|(one, _), (other, _)| one.cmp(other));
        run_again
    }
}

/// The key with the cause of another run, if one of its writes is missing.
fn missing(key: &Key, pending: &[Pending]) -> Option<(Key, Cause)> {
    let (kind, object) = pending.iter().find_map(Pending::missing)?;
    Some((key.clone(), Cause::new(Trigger::Deleted, Some(kind.clone()), object.clone())))
}
