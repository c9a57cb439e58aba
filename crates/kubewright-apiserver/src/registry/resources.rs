//! The registry that requests see.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use super::resource::Registry;
use crate::storage::Revision;

/// Holds the current registry. The CRD controller replaces it as a whole, so a request that took it sees one state.
#[derive(Default)]
pub(crate) struct Resources {
    registry: RwLock<Arc<Registry>>,
    /// The latest revision of a CRD in the registry, or a later one.
    revision: AtomicU64,
}

impl Resources {
    pub(crate) fn new(registry: Registry) -> Self {
        Self { registry: RwLock::new(Arc::new(registry)), revision: AtomicU64::default() }
    }

    pub(crate) fn current(&self) -> Arc<Registry> {
        self.registry.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the registry. Its CRDs are from this revision or earlier ones.
    pub(crate) fn replace(&self, registry: Registry, revision: Revision) {
        // Before the registry, so that a reader of the registry waits for the revision.
        self.revision.fetch_max(revision, Ordering::AcqRel);
        *self.registry.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(registry);
    }

    /// The revision that must be durable before clients see the current registry.
    pub(crate) fn revision(&self) -> Revision {
        self.revision.load(Ordering::Acquire)
    }
}
