//! The RBAC index of one server, kept in sync with its store.
//!
//! The first check after a change of a role or binding updates the [`RbacIndex`] from the store's events, so
//! a decision is never older than the request. If no RBAC object changed, a check costs two locks and a few
//! lookups; other writes cost one look at the events of each RBAC kind.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use super::rbac_index::{Kind, RbacIndex};
use crate::storage::{EventKind, Expired, Revision, Store};

/// The index, and the revision up to which it is current.
#[derive(Debug, Default)]
pub(crate) struct Rbac {
    index: RwLock<Arc<RbacIndex>>,
    seen: AtomicU64,
}

impl Rbac {
    /// A copy for a forked store, which may be at a later revision.
    pub(crate) fn fork(&self) -> Self {
        let index = self.index.read().unwrap_or_else(PoisonError::into_inner);
        // Read under the lock, so that the index contains every revision up to `seen`.
        let seen = self.seen.load(Ordering::Acquire);
        Self { index: RwLock::new(index.clone()), seen: AtomicU64::new(seen) }
    }

    /// Calls `ask` with an index that is current for `store`.
    pub(crate) fn ask<T>(&self, store: &Store, ask: impl FnOnce(&RbacIndex) -> T) -> T {
        let revision = store.revision();
        {
            let index = self.index.read().unwrap_or_else(PoisonError::into_inner);
            let seen = self.seen.load(Ordering::Acquire);
            if seen >= revision {
                return ask(&index);
            }
            if Kind::ALL.iter().all(|kind| is_quiet(store, *kind, seen)) {
                self.seen.fetch_max(revision, Ordering::AcqRel);
                return ask(&index);
            }
        }
        ask(&self.catch_up(store))
    }

    fn catch_up(&self, store: &Store) -> Arc<RbacIndex> {
        let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
        let seen = self.seen.load(Ordering::Acquire);
        // Read the revision before the events: events in between are applied twice, which is harmless.
        let revision = store.revision();
        let followed = seen > 0 && follow(Arc::make_mut(&mut index), store, seen).is_ok();
        if !followed {
            *index = Arc::new(all(store));
        }
        self.seen.fetch_max(revision, Ordering::AcqRel);
        index.clone()
    }
}

fn is_quiet(store: &Store, kind: Kind, seen: Revision) -> bool {
    seen > 0 && store.events(kind.storage(), seen, 1).is_ok_and(|events| events.is_empty())
}

/// Applies all events since a revision.
fn follow(index: &mut RbacIndex, store: &Store, seen: Revision) -> Result<(), Expired> {
    for kind in Kind::ALL {
        for event in store.events(kind.storage(), seen, usize::MAX)? {
            match event.kind {
                EventKind::Added | EventKind::Modified => index.put(kind, &event.version),
                EventKind::Deleted => index.remove(kind, &event.version.key),
            }
        }
    }
    Ok(())
}

fn all(store: &Store) -> RbacIndex {
    let mut index = RbacIndex::default();
    for kind in Kind::ALL {
        // Listing at the current revision never expires.
        for version in store.list(kind.storage(), "", None).into_iter().flat_map(|listing| listing.items) {
            index.put(kind, &version);
        }
    }
    index
}
