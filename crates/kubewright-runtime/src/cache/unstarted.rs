//! A second cache with what was registered with a first one.
//!
//! It shares no object and no watch with the first: only options, kinds and index functions.

use super::Cache;
use crate::Kind;

impl Cache {
    /// A cache that watches what this one watches, with the same indexes, and is not started.
    pub(crate) fn unstarted(&self) -> Self {
        let copy =
            Self::new(self.inner.options.clone()).expect("the options were checked when this cache was made");
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
