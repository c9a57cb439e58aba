//! The objects of one informer and their indexes: a state machine without async.
//!
//! Invariants: an index names exactly the keys whose objects say so; [`Store::replace`] reports everything that
//! went away as a deletion, so that nobody who follows the changes misses one; a change is of one object, never of
//! one and its namesake.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use super::entry::Entry;
use crate::Key;

/// The values under which an object is found.
pub(crate) type IndexFn = Arc<dyn Fn(&Entry) -> Vec<String> + Send + Sync>;

/// What happened to one object.
#[derive(Debug, Clone)]
pub struct Change {
    /// The object before; none if it is new.
    pub old: Option<Arc<Entry>>,
    /// The object now; none if it is gone.
    pub new: Option<Arc<Entry>>,
    /// Why this is told.
    pub occasion: Occasion,
}

/// Why a change is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occasion {
    /// The object was there when the informer started, or when somebody began to follow it.
    Initial,
    /// The server told of it.
    Event,
    /// Nothing happened; all objects are told of from time to time.
    Resync,
}

impl Change {
    /// The object now, or as it was last.
    pub fn latest(&self) -> &Arc<Entry> {
        self.new.as_ref().or(self.old.as_ref()).expect("a change has an object")
    }

    /// Joins what happened later to the same object to this, for one who looks only now.
    pub(crate) fn then(&mut self, later: Change) {
        // Somebody who saw the object before must hear of its end; for somebody who did not, it still was there.
        if self.old.is_none() && later.new.is_none() {
            self.old = later.old;
        }
        self.new = later.new;
        if later.occasion == Occasion::Event {
            self.occasion = Occasion::Event;
        }
    }
}

#[derive(Default)]
struct Index {
    by_value: BTreeMap<Arc<str>, BTreeSet<Key>>,
    by_key: BTreeMap<Key, Box<[Arc<str>]>>,
}

impl Index {
    fn set(&mut self, key: &Key, values: Vec<String>) {
        self.remove(key);
        if values.is_empty() {
            return;
        }
        let values: Box<[Arc<str>]> = values
            .into_iter()
            .map(|value| {
                let value = match self.by_value.get_key_value(&*value) {
                    Some((known, _)) => known.clone(),
                    None => Arc::from(value),
                };
                self.by_value.entry(value.clone()).or_default().insert(key.clone());
                value
            })
            .collect();
        self.by_key.insert(key.clone(), values);
    }

    fn remove(&mut self, key: &Key) {
        for value in self.by_key.remove(key).into_iter().flatten() {
            if let Some(keys) = self.by_value.get_mut(&value) {
                keys.remove(key);
                if keys.is_empty() {
                    self.by_value.remove(&value);
                }
            }
        }
    }
}

/// The objects of one informer.
#[derive(Default)]
pub(crate) struct Store {
    objects: BTreeMap<Key, Arc<Entry>>,
    indexes: BTreeMap<String, (IndexFn, Index)>,
}

impl Store {
    pub(crate) fn get(&self, key: &str) -> Option<&Arc<Entry>> {
        self.objects.get(key)
    }

    pub(crate) fn len(&self) -> usize {
        self.objects.len()
    }

    /// The bytes of JSON that are held.
    pub(crate) fn bytes(&self) -> usize {
        self.objects.values().map(|entry| entry.len()).sum()
    }

    /// All objects in a namespace, or all, in the order of their keys.
    pub(crate) fn iter(&self, namespace: Option<&str>) -> impl Iterator<Item = &Arc<Entry>> {
        self.objects.range::<Key, _>(within(namespace)).map(|(_, entry)| entry)
    }

    /// The objects that an index has under a value, in a namespace or in all; `None` if there is no such index.
    pub(crate) fn find(
        &self,
        index: &str,
        value: &str,
        namespace: Option<&str>,
    ) -> Option<impl Iterator<Item = &Arc<Entry>>> {
        let (_, index) = self.indexes.get(index)?;
        let keys = index.by_value.get(value).map(|keys| keys.range::<Key, _>(within(namespace)));
        Some(keys.into_iter().flatten().filter_map(|key| self.objects.get(key)))
    }

    /// Adds an index over what is there and what comes.
    pub(crate) fn add_index(&mut self, name: &str, values: IndexFn) {
        let mut index = Index::default();
        for (key, entry) in &self.objects {
            index.set(key, values(entry));
        }
        self.indexes.insert(name.to_owned(), (values, index));
    }

    /// Takes an object as it is now. `None` if that is known already.
    pub(crate) fn put(&mut self, entry: Arc<Entry>) -> Option<Change> {
        let old = self.objects.get(entry.key());
        if let Some(old) = old
            && old.version() == entry.version()
            && old.version() != 0
        {
            return None;
        }
        for (values, index) in self.indexes.values_mut() {
            index.set(entry.key(), values(&entry));
        }
        let old = self.objects.insert(entry.key().clone(), entry.clone());
        Some(Change { old, new: Some(entry), occasion: Occasion::Event })
    }

    /// Forgets an object; `last` is how the server saw it last.
    pub(crate) fn remove(&mut self, key: &Key, last: Option<Arc<Entry>>) -> Option<Change> {
        let old = self.objects.remove(key)?;
        for (_, index) in self.indexes.values_mut() {
            index.remove(key);
        }
        Some(Change { old: Some(last.unwrap_or(old)), new: None, occasion: Occasion::Event })
    }

    /// Takes everything that is there now in a namespace, or in all: what differs is told, in the order of the keys.
    pub(crate) fn replace(&mut self, namespace: Option<&str>, now: Vec<Arc<Entry>>) -> Vec<Change> {
        let keys: BTreeSet<&Key> = now.iter().map(|entry| entry.key()).collect();
        let gone: Vec<Key> = self
            .iter(namespace)
            .map(|entry| entry.key())
            .filter(|key| !keys.contains(key))
            .cloned()
            .collect();
        drop(keys);
        let mut changes: Vec<Change> = gone.iter().filter_map(|key| self.remove(key, None)).collect();
        for entry in now {
            let namesake = |old: &Arc<Entry>| old.version() != entry.version() && old.uid() != entry.uid();
            if self.objects.get(entry.key()).is_some_and(namesake) {
                changes.extend(self.remove(entry.key(), None));
            }
            changes.extend(self.put(entry));
        }
        changes
    }
}

/// The keys of a namespace, or all.
fn within(namespace: Option<&str>) -> (Bound<Key>, Bound<Key>) {
    match namespace {
        // '0' follows '/', so this is what starts with `namespace/`.
        Some(namespace) => (
            Bound::Included(Key::cluster(&format!("{namespace}/"))),
            Bound::Excluded(Key::cluster(&format!("{namespace}0"))),
        ),
        None => (Bound::Unbounded, Bound::Unbounded),
    }
}

#[cfg(test)]
mod tests;
