//! A cache for one reconcile outside of a controller: it has the kinds and indexes of other caches.
//!
//! It shares options and index functions with them, but no objects and no watches. While the reconcile runs
//! ([`Cache::in_place`]), reads of those caches are served by this one, so that a reconciler can hold an
//! [`Index`](super::Index), a cache or a client of a manager that does not run.

use std::sync::Arc;

use super::{Cache, Running};
use crate::manager::RegisterError;
use crate::reconcile::OWNER_INDEX;
use crate::{Gvk, Kind};

tokio::task_local! {
    /// The cache that serves reads of others in this task.
    static IN_PLACE: Cache;
}

impl Cache {
    /// Creates an unstarted cache with the same informers and indexes.
    pub(crate) fn unstarted(&self) -> Self {
        let copy = Self::new(self.inner.options.clone()).expect("Cache::new has validated the options");
        for (id, running) in self.informers().iter() {
            let informer = copy.informer_by(id.clone());
            running.informer.copy_indexes(&informer, |_| true);
        }
        copy.replaces(self);
        copy
    }

    /// Adds the kinds that another cache has indexes of, with the indexes.
    pub(crate) fn copy_indexes(&self, other: &Self) -> Result<(), RegisterError> {
        let indexed = |running: &&Running| !running.informer.index_names().is_empty();
        let informers: Vec<_> = other
            .informers()
            .iter()
            .filter(|(_, it)| indexed(it))
            .map(|(id, it)| (id.clone(), it.clone()))
            .collect();
        for (id, running) in informers {
            let (kind, informer) = (id.kind.gvk().clone(), self.informer_by(id));
            let taken = running.informer.copy_indexes(&informer, |name| name != OWNER_INDEX);
            if let Some(index) = taken {
                return Err(RegisterError::IndexTaken { kind, index: index.to_string() });
            }
        }
        self.replaces(other);
        Ok(())
    }

    fn replaces(&self, other: &Self) {
        self.inner
            .replaced
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .push(other.inner.common.clone());
    }

    /// Runs a reconcile in which this cache serves the reads of the caches that it was copied from.
    pub(crate) fn in_place<F: Future>(&self, reconcile: F) -> impl Future<Output = F::Output> {
        IN_PLACE.scope(self.clone(), reconcile)
    }

    /// The cache that serves reads of this one in the current task, if it is a different one.
    pub(crate) fn replacement(&self) -> Option<Self> {
        IN_PLACE
            .try_with(|cache| cache.is_in_place_of(&self.inner.common).then(|| cache.clone()))
            .ok()
            .flatten()
    }

    /// The cache that serves reads of an informer in the current task, if it is not the informer's own.
    pub(super) fn replacement_of(common: &Arc<super::Common>) -> Option<Self> {
        IN_PLACE.try_with(|cache| cache.is_in_place_of(common).then(|| cache.clone())).ok().flatten()
    }

    fn is_in_place_of(&self, common: &Arc<super::Common>) -> bool {
        let replaced = self.inner.replaced.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        replaced.iter().any(|it| Arc::ptr_eq(it, common))
    }

    /// The kinds that have an informer, in order.
    pub(crate) fn registered(&self) -> Vec<Kind> {
        self.informers().keys().map(|id| id.kind.clone()).collect()
    }

    /// The kind of a resource that has an informer, in any version.
    pub(crate) fn kind_of_resource(&self, group: &str, plural: &str) -> Option<Kind> {
        let is_of = |kind: &Kind| {
            let Gvk { group: own, .. } = kind.gvk();
            own == group && kind.plural() == plural
        };
        self.informers().keys().map(|id| &id.kind).find(|kind| is_of(kind)).cloned()
    }
}
