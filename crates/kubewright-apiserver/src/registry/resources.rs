//! The registry that requests see.

use std::sync::{Arc, PoisonError, RwLock};

use super::resource::Registry;

/// Holds the current registry. The CRD controller replaces it as a whole, so a request that took it sees one state.
#[derive(Default)]
pub(crate) struct Resources(RwLock<Arc<Registry>>);

impl Resources {
    pub(crate) fn new(registry: Registry) -> Self {
        Self(RwLock::new(Arc::new(registry)))
    }

    pub(crate) fn current(&self) -> Arc<Registry> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn replace(&self, registry: Registry) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(registry);
    }
}
