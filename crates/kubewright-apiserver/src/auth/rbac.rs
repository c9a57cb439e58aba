//! The rights of one server, kept up with its store.
//!
//! Whoever asks first after a role or binding changed brings [`RbacIndex`] up to date from the store's events, so
//! a decision is never older than the request. While nothing of that kind changes, asking costs two locks and a
//! few lookups; other writes cost one look at the events of each kind.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use super::rbac_index::{Kind, RbacIndex};
use crate::storage::{EventKind, Expired, Revision, Store};

/// The rights, and up to which revision they are known.
#[derive(Debug, Default)]
pub(crate) struct Rbac {
    rights: RwLock<Arc<RbacIndex>>,
    seen: AtomicU64,
}

impl Rbac {
    /// For a copy of the store, which may have gone further than this.
    pub(crate) fn fork(&self) -> Self {
        let rights = self.rights.read().unwrap_or_else(PoisonError::into_inner);
        // Read under the lock: what was seen is in the rights.
        let seen = self.seen.load(Ordering::Acquire);
        Self { rights: RwLock::new(rights.clone()), seen: AtomicU64::new(seen) }
    }

    /// Asks the rights as they are in `store` now.
    pub(crate) fn ask<T>(&self, store: &Store, ask: impl FnOnce(&RbacIndex) -> T) -> T {
        let revision = store.revision();
        {
            let rights = self.rights.read().unwrap_or_else(PoisonError::into_inner);
            let seen = self.seen.load(Ordering::Acquire);
            if seen >= revision {
                return ask(&rights);
            }
            if Kind::ALL.iter().all(|kind| is_quiet(store, *kind, seen)) {
                self.seen.fetch_max(revision, Ordering::AcqRel);
                return ask(&rights);
            }
        }
        ask(&self.catch_up(store))
    }

    fn catch_up(&self, store: &Store) -> Arc<RbacIndex> {
        let mut rights = self.rights.write().unwrap_or_else(PoisonError::into_inner);
        let seen = self.seen.load(Ordering::Acquire);
        // Read before the events are: those that come in between are taken note of twice, which does no harm.
        let revision = store.revision();
        let followed = seen > 0 && follow(Arc::make_mut(&mut rights), store, seen).is_ok();
        if !followed {
            *rights = Arc::new(all(store));
        }
        self.seen.fetch_max(revision, Ordering::AcqRel);
        rights.clone()
    }
}

fn is_quiet(store: &Store, kind: Kind, seen: Revision) -> bool {
    seen > 0 && store.events(kind.storage(), seen, 1).is_ok_and(|events| events.is_empty())
}

/// Takes note of everything that happened since a revision.
fn follow(rights: &mut RbacIndex, store: &Store, seen: Revision) -> Result<(), Expired> {
    for kind in Kind::ALL {
        for event in store.events(kind.storage(), seen, usize::MAX)? {
            match event.kind {
                EventKind::Added | EventKind::Modified => rights.put(kind, &event.version),
                EventKind::Deleted => rights.remove(kind, &event.version.key),
            }
        }
    }
    Ok(())
}

fn all(store: &Store) -> RbacIndex {
    let mut rights = RbacIndex::default();
    for kind in Kind::ALL {
        // The present can always be listed.
        for version in store.list(kind.storage(), "", None).into_iter().flat_map(|listing| listing.items) {
            rights.put(kind, &version);
        }
    }
    rights
}
