//! What the keys of a controller wait for: their own writes, on their way through the watch.
//!
//! Invariant: a key whose debts were all paid costs nothing, be it that it never runs again.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::Key;
use crate::client::ledger::Pending;

/// What reconciles wrote that the cache had not seen when they ended, by key.
#[derive(Default)]
pub(super) struct Debts(Mutex<Outstanding>);

#[derive(Default)]
struct Outstanding {
    by_key: HashMap<Key, Vec<Pending>>,
    /// How many keys there may be before those are looked for whose debts were paid meanwhile.
    sweep_at: usize,
}

/// Below this many keys it is not worth to look.
const SWEEP_FROM: usize = 1024;

impl Debts {
    /// What the cache has still to see before a key may run.
    pub(super) fn take(&self, key: &Key) -> Option<Vec<Pending>> {
        let mut debts = self.lock().by_key.remove(key)?;
        debts.retain(|debt| !debt.is_paid());
        (!debts.is_empty()).then_some(debts)
    }

    /// Notes what the reconcile of a key wrote.
    pub(super) fn put(&self, key: &Key, debts: Vec<Pending>) {
        if debts.is_empty() {
            return;
        }
        let mut outstanding = self.lock();
        outstanding.by_key.insert(key.clone(), debts);
        // A key that never runs again, because a predicate hears nothing of what it wrote, must not stay for ever.
        if outstanding.by_key.len() >= outstanding.sweep_at.max(SWEEP_FROM) {
            outstanding.by_key.retain(|_, debts| debts.iter().any(|debt| !debt.is_paid()));
            outstanding.sweep_at = 2 * outstanding.by_key.len();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Outstanding> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
