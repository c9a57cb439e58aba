//! User functions: index functions and the transform.
//!
//! Invariants: they run without the lock that readers take, one at a time per informer, and a panic affects only one
//! object.

use std::any::TypeId;
use std::sync::{Arc, MutexGuard, PoisonError};

use tracing::{error, warn};

use super::{Informer, Part};
use crate::cache::entry::{Entry, Transform};
use crate::cache::store::{Index, Indexed};
use crate::panics::{Panic, contain};
use crate::reconcile::OWNER_INDEX;

/// Computes the index values of an object.
pub(in crate::cache) type IndexFn = Arc<dyn Fn(&Entry) -> Vec<String> + Send + Sync>;

/// An index function and its name.
#[derive(Clone)]
pub(super) struct Indexer {
    name: Arc<str>,
    /// Identifies the function; `None` if it cannot be compared with others.
    function: Option<TypeId>,
    values: IndexFn,
}

impl Informer {
    /// Adds an index over all objects, unless it exists. Returns false if another function is registered under that
    /// name.
    pub(crate) fn add_index(&self, name: &Arc<str>, function: Option<TypeId>, values: IndexFn) -> bool {
        let mut indexers = self.indexers();
        if let Some(known) = indexers.iter().find(|indexer| indexer.name == *name) {
            return function.is_some() && known.function == function;
        }
        let indexer = Indexer { name: name.clone(), function, values };
        let entries: Vec<Arc<Entry>> = self.read().store.iter(None).cloned().collect();
        let mut index = Index::default();
        for entry in entries {
            index.set(entry.key(), self.values(&indexer, &entry));
        }
        self.write().store.add_index(indexer.name.clone(), index);
        indexers.push(indexer);
        true
    }

    /// Copies some indexes to another informer, which has no objects yet. Returns the name of an index that the other
    /// has with another function.
    pub(in crate::cache) fn copy_indexes(
        &self,
        other: &Self,
        copies: impl Fn(&str) -> bool,
    ) -> Option<Arc<str>> {
        let mut indexers = self.indexers().clone();
        indexers.retain(|indexer| copies(&indexer.name));
        let mut taken =
            indexers.into_iter().filter(|it| !other.add_index(&it.name, it.function, it.values.clone()));
        taken.next().map(|indexer| indexer.name)
    }

    /// The names of the indexes that the operator registered.
    pub(in crate::cache) fn index_names(&self) -> Vec<Arc<str>> {
        let own = |name: &Arc<str>| **name != *OWNER_INDEX;
        self.indexers().iter().map(|indexer| indexer.name.clone()).filter(own).collect()
    }

    /// Calls an index function. If it panics, the object has no values.
    fn values(&self, indexer: &Indexer, entry: &Entry) -> Vec<String> {
        contain(|| (indexer.values)(entry)).unwrap_or_else(|Panic { message, at, times }| {
            self.common.metrics.panicked(self.kind.gvk(), Some(&indexer.name));
            error!(
                kind = %self.kind.gvk(),
                object = %entry.key(),
                index = &*indexer.name,
                panic = message,
                at,
                times,
                "Index function panicked; object not indexed",
            );
            Vec::new()
        })
    }

    pub(super) fn indexed(&self, indexers: &[Indexer], entry: Arc<Entry>) -> Indexed {
        Indexed { values: indexers.iter().map(|indexer| self.values(indexer, &entry)).collect(), entry }
    }

    /// Parses an object as it is stored. If the transform fails, the object is stored as the server sent it.
    pub(crate) fn entry_of(&self, part: &Part, object: &str) -> Result<Arc<Entry>, serde_json::Error> {
        let keep = self.settings.keep_managed_fields;
        let transform = part.scope.transform.as_ref();
        let transformed = transform.and_then(|transform| self.transformed(transform, object));
        let entry = Entry::read(transformed.as_deref().unwrap_or(object), keep)?;
        if let Some(observe) = self.common.observer.get() {
            observe(&self.kind, &entry, object);
        }
        Ok(self.known(entry.key(), entry.version()).unwrap_or_else(|| Arc::new(entry)))
    }

    fn transformed(&self, transform: &Transform, object: &str) -> Option<String> {
        let object_key =
            || Entry::read(object, false).map(|entry| entry.key().to_string()).unwrap_or_default();
        match contain(|| transform(object)) {
            Ok(Ok(transformed)) => Some(transformed),
            Ok(Err(error)) => {
                warn!(
                    kind = %self.kind.gvk(),
                    object = object_key(),
                    %error,
                    "Failed to decode object in transform; caching it untransformed",
                );
                None
            }
            Err(Panic { message, at, times }) => {
                self.common.metrics.panicked(self.kind.gvk(), None);
                error!(
                    kind = %self.kind.gvk(),
                    object = object_key(),
                    panic = message,
                    at,
                    times,
                    "Transform panicked; caching the object untransformed",
                );
                None
            }
        }
    }

    pub(super) fn indexers(&self) -> MutexGuard<'_, Vec<Indexer>> {
        self.indexers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
