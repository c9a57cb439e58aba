//! The objects of one informer and their indexes. A state machine without async.
//!
//! Index functions are user code, which may be slow or panic. The store never calls them: the caller passes each object
//! with its index values ([`Indexed`]).
//!
//! Invariants: an index, including the label index, contains exactly the keys of the objects with a value;
//! [`Store::apply`] reports every object that is missing from a new list as deleted; a change never merges two objects
//! of the same name with different uids.

mod labels;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use self::labels::LabelIndex;
use super::entry::Entry;
use crate::{Key, LabelSelector};

/// A selector selects few objects if it selects fewer than one in this many.
const FEW: usize = 8;

/// An object with its index values, one list per index, in the order of [`Store::add_index`].
pub(crate) struct Indexed {
    pub(crate) entry: Arc<Entry>,
    pub(crate) values: Vec<Vec<String>>,
}

/// The difference between the store and a new list.
#[derive(Default)]
pub(crate) struct Difference {
    /// Objects that are missing from the list.
    pub(crate) removed: Vec<Key>,
    /// Objects that are new or have a different resourceVersion.
    pub(crate) changed: Vec<Arc<Entry>>,
}

/// A change of one object.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Change {
    /// The object before the change; `None` if it is new.
    pub old: Option<Arc<Entry>>,
    /// The object after the change; `None` if it was removed.
    pub new: Option<Arc<Entry>>,
    /// What triggered the change.
    pub occasion: Occasion,
    /// Why the object was removed; `None` if it was not.
    pub removal: Option<Removal>,
}

/// Why an object is no longer in the cache.
///
/// A watch with a label or field selector sends the same event for an object that was deleted and for one that no
/// longer matches. The informer distinguishes them by the labels of the event's object if the server sends its new
/// state, and otherwise by a GET of the object's metadata. Without a selector, a removed object was deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Removal {
    /// The object no longer exists. It was deleted, possibly after it stopped matching the selector.
    Deleted,
    /// The object exists but no longer matches the selector. Its later changes and its deletion are not reported.
    Deselected,
    /// Not known: the object was missing from a new list with a selector, the GET failed, or too many objects left the
    /// watch at once to check each.
    Unknown,
}

/// What triggered a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Occasion {
    /// The object existed when the informer or the follower started.
    Initial,
    /// The object changed.
    Event,
    /// Nothing changed: the periodic resync.
    Resync,
}

impl Change {
    /// The current object, or its last state if it was removed.
    pub fn latest(&self) -> &Arc<Entry> {
        self.new.as_ref().or(self.old.as_ref()).expect("a change has an old or a new object")
    }

    /// Merges a later change of the same object into this one, for a reader that has seen neither.
    pub(crate) fn then(&mut self, later: Change) {
        // Report the deletion even if the reader has never seen the object.
        if self.old.is_none() && later.new.is_none() {
            self.old = later.old;
        }
        self.new = later.new;
        self.removal = later.removal;
        if later.occasion == Occasion::Event {
            self.occasion = Occasion::Event;
        }
    }
}

/// Keys by index value.
#[derive(Default)]
pub(crate) struct Index {
    by_value: BTreeMap<Arc<str>, BTreeSet<Key>>,
    by_key: BTreeMap<Key, Box<[Arc<str>]>>,
}

impl Index {
    pub(crate) fn set(&mut self, key: &Key, values: Vec<String>) {
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
    indexes: Vec<(Arc<str>, Index)>,
    labels: LabelIndex,
}

impl Store {
    pub(crate) fn get(&self, key: &str) -> Option<&Arc<Entry>> {
        self.objects.get(key)
    }

    pub(crate) fn len(&self) -> usize {
        self.objects.len()
    }

    /// The size of the stored JSON in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.objects.values().map(|entry| entry.len()).sum()
    }

    /// The objects of a namespace, or all, ordered by key.
    pub(crate) fn iter(&self, namespace: Option<&str>) -> impl Iterator<Item = &Arc<Entry>> {
        self.objects.range::<Key, _>(within(namespace)).map(|(_, entry)| entry)
    }

    /// The objects with an index value, in a namespace or in all; `None` if the index does not exist.
    pub(crate) fn find(
        &self,
        index: &str,
        value: &str,
        namespace: Option<&str>,
    ) -> Option<impl Iterator<Item = &Arc<Entry>>> {
        let (_, index) = self.indexes.iter().find(|(name, _)| **name == *index)?;
        let keys = index.by_value.get(value).map(|keys| keys.range::<Key, _>(within(namespace)));
        Some(keys.into_iter().flatten().filter_map(|key| self.objects.get(key)))
    }

    /// The objects that match a label selector, in a namespace or in all, ordered by key.
    pub(crate) fn select(&self, selector: &LabelSelector, namespace: Option<&str>) -> Vec<Arc<Entry>> {
        let plan = self.labels.plan(selector, self.objects.len());
        let matches = |entry: &&Arc<Entry>| self.labels.matches(plan.others.iter().copied(), entry);
        let Some(first) = plan.first else { return self.iter(namespace).filter(matches).cloned().collect() };
        let keys = self.labels.keys(first, &within(namespace));
        if keys.len() < self.objects.len() / FEW {
            return keys
                .into_iter()
                .filter_map(|key| self.objects.get(key))
                .filter(matches)
                .cloned()
                .collect();
        }
        // Walking all objects is faster than a lookup per key.
        let mut keys = keys.into_iter().peekable();
        let selected = self.objects.range::<Key, _>(within(namespace));
        let selected = selected.filter(|(key, _)| keys.next_if(|next| next == key).is_some());
        selected.map(|(_, entry)| entry).filter(matches).cloned().collect()
    }

    /// Whether an object of this store matches a label selector.
    pub(crate) fn matches(&self, selector: &LabelSelector, entry: &Entry) -> bool {
        self.labels.matches(selector.requirements(), entry)
    }

    /// Adds an index that the caller has built from the objects of this store.
    pub(crate) fn add_index(&mut self, name: Arc<str>, index: Index) {
        self.indexes.push((name, index));
    }

    /// Whether this version of the object is already stored.
    pub(crate) fn has(&self, entry: &Entry) -> bool {
        let old = self.objects.get(entry.key());
        old.is_some_and(|old| old.version() == entry.version() && old.version() != 0)
    }

    /// Stores the current state of an object. `None` if this version is already stored.
    pub(crate) fn put(&mut self, Indexed { entry, values }: Indexed) -> Option<Change> {
        if self.has(&entry) {
            return None;
        }
        for ((_, index), values) in self.indexes.iter_mut().zip(values) {
            index.set(entry.key(), values);
        }
        let old = self.objects.insert(entry.key().clone(), entry.clone());
        self.labels.replace(old.as_deref(), Some(&entry));
        Some(Change { old, new: Some(entry), occasion: Occasion::Event, removal: None })
    }

    /// Removes an object; `last` is its last state if the server sent it.
    pub(crate) fn remove(&mut self, key: &Key, last: Option<Arc<Entry>>, removal: Removal) -> Option<Change> {
        let old = self.objects.remove(key)?;
        for (_, index) in &mut self.indexes {
            index.remove(key);
        }
        self.labels.replace(Some(&old), None);
        let old = Some(last.unwrap_or(old));
        Some(Change { old, new: None, occasion: Occasion::Event, removal: Some(removal) })
    }

    /// Compares the objects of a namespace, or of all namespaces `except` some, with a new list.
    pub(crate) fn difference(
        &self,
        namespace: Option<&str>,
        except: &[String],
        now: Vec<Arc<Entry>>,
    ) -> Difference {
        let keys: BTreeSet<&Key> = now.iter().map(|entry| entry.key()).collect();
        let excepted = |key: &Key| except.iter().any(|it| key.namespace() == Some(it));
        let removed = self.iter(namespace).map(|entry| entry.key());
        let removed = removed.filter(|key| !keys.contains(key) && !excepted(key)).cloned().collect();
        drop(keys);
        Difference { removed, changed: now.into_iter().filter(|entry| !self.has(entry)).collect() }
    }

    /// Applies the difference to a new list; `removal` is the reason of missing objects. Returns the changes ordered by
    /// key: removed objects first, then the others.
    pub(crate) fn apply(&mut self, removed: &[Key], removal: Removal, changed: Vec<Indexed>) -> Vec<Change> {
        let removed = removed.iter();
        let mut changes: Vec<Change> = removed.filter_map(|key| self.remove(key, None, removal)).collect();
        for indexed in changed {
            let entry = &indexed.entry;
            if self.objects.get(entry.key()).is_some_and(|old| old.uid() != entry.uid()) {
                // The object was deleted and recreated under the same name.
                changes.extend(self.remove(&entry.key().clone(), None, Removal::Deleted));
            }
            changes.extend(self.put(indexed));
        }
        changes
    }
}

/// The key range of a namespace, or of all.
fn within(namespace: Option<&str>) -> (Bound<Key>, Bound<Key>) {
    match namespace {
        // '0' follows '/', so this range is the keys that start with `namespace/`.
        Some(namespace) => (
            Bound::Included(Key::cluster(&format!("{namespace}/"))),
            Bound::Excluded(Key::cluster(&format!("{namespace}0"))),
        ),
        None => (Bound::Unbounded, Bound::Unbounded),
    }
}

#[cfg(test)]
mod tests;
