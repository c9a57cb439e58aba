//! What one reconcile wrote, so that the next one of the same key can wait until the cache has seen it.
//!
//! Invariant: a debt is for an informer that will surely tell of the write. Waiting for one that never does would
//! hold a key up for nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::cache::{Cache, Informer};
use crate::{Key, Kind, LabelSelector};

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
pub(crate) struct Ledger(Arc<Mutex<BTreeMap<Key, Vec<Debt>>>>);

/// What a cache has perhaps not seen yet of one object.
pub(crate) struct Debt {
    informer: Arc<Informer>,
    key: Key,
    /// The last version that was written.
    version: u64,
    /// The uid of the object that was deleted after that.
    gone: Option<String>,
}

impl Ledger {
    /// Notes a write for every informer that will tell of it. `labels` are those of the object as it is now, if it
    /// is there.
    pub(crate) fn note(
        &self,
        cache: &Cache,
        kind: &Kind,
        key: &Key,
        wrote: &Wrote,
        labels: Option<&BTreeMap<String, String>>,
    ) {
        let mut debts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for informer in cache.all_of(kind).into_iter().filter(|it| it.covers(key.namespace())) {
            let known = debts.get_mut(key).into_iter().flatten();
            let mut known = known.filter(|debt| Arc::ptr_eq(&debt.informer, &informer));
            if let Some(debt) = known.next() {
                // What is told of an object is told of its end, and of its leaving a selection.
                debt.add(wrote);
            } else if tells(&informer, key, labels) {
                let mut debt = Debt { informer, key: key.clone(), version: 0, gone: None };
                debt.add(wrote);
                debts.entry(key.clone()).or_default().push(debt);
            }
        }
    }

    /// What the caches have not seen yet.
    pub(crate) fn unpaid(&self) -> Vec<Debt> {
        let debts = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        debts.into_values().flatten().filter(|debt| !debt.is_paid()).collect()
    }
}

/// Whether an informer will tell of a write: it has the object, or selects it as it is now.
fn tells(informer: &Informer, key: &Key, labels: Option<&BTreeMap<String, String>>) -> bool {
    let selection = &informer.settings().selection;
    let all = selection.labels.is_empty() && selection.fields.is_empty();
    let selected = || {
        // What fields select is the server's to know. That one is not waited for the first time.
        let selector = selection.labels.parse::<LabelSelector>().ok().filter(|_| selection.fields.is_empty());
        selector.zip(labels).is_some_and(|(selector, labels)| selector.matches(labels))
    };
    all || informer.entry(key).is_some() || selected()
}

impl Debt {
    fn add(&mut self, wrote: &Wrote) {
        match wrote {
            Wrote::Version(version) => {
                self.version = *version;
                self.gone = None;
            }
            // The version stays: an object whose creation the cache has not seen yet is not there either.
            Wrote::Gone(uid) => self.gone = Some(uid.clone()),
        }
    }

    pub(crate) fn is_paid(&self) -> bool {
        self.paid_by(&self.informer)
    }

    fn paid_by(&self, informer: &Informer) -> bool {
        let is_gone = |uid: &String| informer.entry(&self.key).is_none_or(|entry| entry.uid() != *uid);
        informer.has_seen(self.key.namespace(), self.version) && self.gone.as_ref().is_none_or(is_gone)
    }

    /// Waits until the cache has seen it.
    pub(crate) async fn paid(self) {
        self.informer.wait_until(self.key.namespace(), |informer| self.paid_by(informer)).await;
    }
}
