//! The kinds that registered controllers watch once the cache starts.
//!
//! A controller creates its informers when the manager starts. Until then, a [`Declaration`] lets reads of its kinds
//! fail instead of asking the server: the same read is served by the cache later.

use std::sync::{Arc, MutexGuard, PoisonError, Weak};

use super::reflector::Selection;
use super::{Cache, Id};
use crate::Kind;

/// The declared kinds of a cache.
pub(super) type Declared = Vec<Weak<Id>>;

/// A kind that will be watched. Dropping it ends the declaration.
#[derive(Debug)]
pub(crate) struct Declaration(#[expect(dead_code, reason = "the cache has the weak reference")] Arc<Id>);

impl Cache {
    /// Declares what [`Cache::select`] will watch. It has no effect on a cache that has started.
    pub(crate) fn declare(
        &self,
        kind: &Kind,
        labels: &str,
        fields: &str,
        metadata_only: bool,
    ) -> Declaration {
        let requested = self.inner.options.requested(kind, labels, fields, metadata_only);
        let id = Arc::new(Id { kind: kind.clone(), requested });
        let mut declared = self.declared();
        declared.retain(|id| id.strong_count() > 0);
        declared.push(Arc::downgrade(&id));
        Declaration(id)
    }

    /// Whether reads of a kind in a namespace are served by this cache once it starts.
    pub(crate) fn will_serve(&self, kind: &Kind, metadata_only: bool, namespace: Option<&str>) -> bool {
        if *self.inner.common.started.borrow() {
            return false;
        }
        let serves = |id: &Id| {
            let by_metadata = id.requested.metadata_only && metadata_only;
            let selection = Selection { metadata_only: by_metadata, ..Selection::default() };
            id.kind == *kind && id.requested == selection
        };
        let declared: Vec<_> = self.declared().iter().filter_map(Weak::upgrade).collect();
        declared.iter().any(|id| {
            let covers = || self.inner.options.settings(kind, &id.requested).covers(namespace);
            serves(id) && (namespace.is_none() || covers())
        })
    }

    fn declared(&self) -> MutexGuard<'_, Declared> {
        self.inner.declared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
