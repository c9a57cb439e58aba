//! Clones a cache's configuration into a new, unstarted cache.
//!
//! The two share options, kinds and index functions, but no objects and no watches.

use super::Cache;
use crate::Kind;

impl Cache {
    /// Creates an unstarted cache with the same informers and indexes.
    pub(crate) fn unstarted(&self) -> Self {
        let copy = Self::new(self.inner.options.clone()).expect("Cache::new has validated the options");
        for (id, running) in self.informers().iter() {
            let informer = copy.informer_by(id.clone());
            running.informer.copy_indexes(&informer);
        }
        copy
    }

    /// The kinds that have an informer, in order.
    pub(crate) fn registered(&self) -> Vec<Kind> {
        self.informers().keys().map(|id| id.kind.clone()).collect()
    }
}
