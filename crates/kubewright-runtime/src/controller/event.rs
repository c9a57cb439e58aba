//! What happened to an object, as predicates and mappings see it.

use std::marker::PhantomData;
use std::sync::Arc;

use crate::Key;
use crate::cache::{Change, Entry, Informer, Occasion, Removal};
use crate::client::Writable;

/// What happened to an object of a watched type. Objects are decoded when they are asked for.
pub struct Event<'a, K> {
    change: &'a Change,
    informer: &'a Informer,
    of: PhantomData<fn() -> K>,
}

impl<'a, K: Writable> Event<'a, K> {
    pub(crate) fn new(change: &'a Change, informer: &'a Informer) -> Self {
        Self { change, informer, of: PhantomData }
    }

    /// Which object it is.
    pub fn key(&self) -> &Key {
        self.change.latest().key()
    }

    /// The object is new, or was there at the start.
    pub fn is_create(&self) -> bool {
        self.change.old.is_none() && self.change.new.is_some()
    }

    /// The object was changed, or is told again.
    pub fn is_update(&self) -> bool {
        self.change.old.is_some() && self.change.new.is_some()
    }

    /// The object is gone from the cache: it was deleted, or it no longer matches the selector of the watch. See
    /// [`Event::removal`].
    pub fn is_delete(&self) -> bool {
        self.change.new.is_none()
    }

    /// Why the object is gone; `None` if it is not.
    pub fn removal(&self) -> Option<Removal> {
        self.change.removal
    }

    /// Why this is told.
    pub fn occasion(&self) -> Occasion {
        self.change.occasion
    }

    /// The object before, if there was one and it can be read.
    pub fn old(&self) -> Option<Arc<K>> {
        self.decode(self.change.old.as_ref())
    }

    /// The object now, if there is one and it can be read.
    pub fn new_object(&self) -> Option<Arc<K>> {
        self.decode(self.change.new.as_ref())
    }

    /// The object now, or as it was last.
    pub fn object(&self) -> Option<Arc<K>> {
        self.decode(Some(self.change.latest()))
    }

    /// The object before, undecoded.
    pub fn old_entry(&self) -> Option<&Entry> {
        self.change.old.as_deref()
    }

    /// The object now, undecoded.
    pub fn new_entry(&self) -> Option<&Entry> {
        self.change.new.as_deref()
    }

    fn decode(&self, entry: Option<&Arc<Entry>>) -> Option<Arc<K>> {
        match self.informer.object(entry?) {
            Ok(object) => Some(object),
            Err(error) => {
                tracing::warn!(error = %crate::error::Chain(&error), "left out of predicates and mappings");
                None
            }
        }
    }
}
