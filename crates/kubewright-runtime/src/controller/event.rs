//! Events of watched objects, as predicates and map functions get them.

use std::marker::PhantomData;
use std::sync::Arc;

use crate::Key;
use crate::cache::{Change, Entry, Informer, Occasion, Removal};
use crate::client::Writable;

/// An event of a watched object. Objects are decoded on access.
pub struct Event<'a, K> {
    change: &'a Change,
    informer: &'a Informer,
    controller: &'a str,
    of: PhantomData<fn() -> K>,
}

impl<'a, K: Writable> Event<'a, K> {
    pub(crate) fn new(change: &'a Change, informer: &'a Informer, controller: &'a str) -> Self {
        Self { change, informer, controller, of: PhantomData }
    }

    /// The key of the object.
    pub fn key(&self) -> &Key {
        self.change.latest().key()
    }

    /// The object was created, or existed at the start.
    pub fn is_create(&self) -> bool {
        self.change.old.is_none() && self.change.new.is_some()
    }

    /// The object was updated, or delivered again by a resync.
    pub fn is_update(&self) -> bool {
        self.change.old.is_some() && self.change.new.is_some()
    }

    /// The object was removed from the cache: it was deleted, or it no longer matches the selector of the watch. See
    /// [`Event::removal`].
    pub fn is_delete(&self) -> bool {
        self.change.new.is_none()
    }

    /// Why the object was removed; `None` if it was not.
    pub fn removal(&self) -> Option<Removal> {
        self.change.removal
    }

    /// What triggered the event.
    pub fn occasion(&self) -> Occasion {
        self.change.occasion
    }

    /// The object before the event, if it existed and can be decoded.
    pub fn old(&self) -> Option<Arc<K>> {
        self.decode(self.change.old.as_ref())
    }

    /// The object after the event, if it exists and can be decoded.
    pub fn new_object(&self) -> Option<Arc<K>> {
        self.decode(self.change.new.as_ref())
    }

    /// The current object, or its last state if it was deleted.
    pub fn object(&self) -> Option<Arc<K>> {
        self.decode(Some(self.change.latest()))
    }

    /// The object before the event, not decoded.
    pub fn old_entry(&self) -> Option<&Entry> {
        self.change.old.as_deref()
    }

    /// The object after the event, not decoded.
    pub fn new_entry(&self) -> Option<&Entry> {
        self.change.new.as_deref()
    }

    fn decode(&self, entry: Option<&Arc<Entry>>) -> Option<Arc<K>> {
        match self.informer.object(entry?) {
            Ok(object) => Some(object),
            Err(error) => {
                tracing::warn!(
                    controller = self.controller,
                    kind = %self.informer.kind().gvk(),
                    object = %self.key(),
                    error = %crate::error::Chain(&error),
                    "Failed to decode object for predicate",
                );
                None
            }
        }
    }
}
