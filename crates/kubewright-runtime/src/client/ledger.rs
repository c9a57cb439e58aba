//! What one reconcile wrote, so that the next one of the same key can wait until the cache has seen it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::cache::{Cache, Informer};
use crate::{Key, Kind};

/// The labels of an object.
pub(crate) type Labels = BTreeMap<String, String>;

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wrote {
    /// The object is at this version now.
    Version(u64),
    /// The object with this uid is gone.
    Gone(String),
}

/// The writes of one reconcile. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Ledger(Arc<Mutex<Vec<Debt>>>);

/// A write that a cache has perhaps not seen yet.
pub(crate) struct Debt {
    informer: Arc<Informer>,
    key: Key,
    wrote: Wrote,
}

impl Ledger {
    /// Notes a write for every informer that will tell of it. `labels` are those that the object has now, if known.
    pub(crate) fn note(&self, cache: &Cache, kind: &Kind, key: &Key, labels: Option<&Labels>, wrote: &Wrote) {
        let mut debts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for informer in cache.all_of(kind) {
            if !informer.will_tell(key, labels) {
                continue;
            }
            let debt = Debt { informer, key: key.clone(), wrote: wrote.clone() };
            debts.retain(|older| !(Arc::ptr_eq(&older.informer, &debt.informer) && older.key == debt.key));
            debts.push(debt);
        }
    }

    /// What the caches have not seen yet.
    pub(crate) fn unpaid(&self) -> Vec<Debt> {
        let mut debts = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        debts.retain(|debt| !debt.is_paid());
        debts
    }
}

impl Debt {
    pub(crate) fn is_paid(&self) -> bool {
        self.paid_by(&self.informer)
    }

    fn paid_by(&self, informer: &Informer) -> bool {
        match &self.wrote {
            Wrote::Version(version) => informer.has_seen(self.key.namespace(), *version),
            Wrote::Gone(uid) => informer.entry(&self.key).is_none_or(|entry| entry.uid() != *uid),
        }
    }

    /// Waits until the cache has seen it.
    pub(crate) async fn paid(self) {
        self.informer.wait_until(self.key.namespace(), |informer| self.paid_by(informer)).await;
    }
}
