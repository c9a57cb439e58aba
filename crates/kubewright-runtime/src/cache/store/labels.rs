//! The label index of a store.
//!
//! Invariant: each label value maps to exactly the keys of the objects with that value. An update that does not change
//! labels, which is the common case, does not touch the index.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::Entry;
use crate::selector::Requirement;
use crate::{Key, LabelSelector};

/// The key range of a namespace, or of all.
type Range = (Bound<Key>, Bound<Key>);

/// How to find the objects that match a selector.
pub(super) struct Plan<'s> {
    /// The requirement that the fewest objects satisfy; `None` if all requirements exclude objects or all objects
    /// satisfy them.
    pub(super) first: Option<&'s Requirement>,
    /// The requirements to check for each object that satisfies the first.
    pub(super) others: Vec<&'s Requirement>,
}

/// Keys by label and value.
#[derive(Default)]
pub(super) struct LabelIndex {
    labels: BTreeMap<Box<str>, BTreeMap<Box<str>, Keys>>,
}

/// The keys of one value. A value that only one object has, such as its own name, needs no tree.
enum Keys {
    One(Key),
    Many(BTreeSet<Key>),
}

impl Keys {
    fn len(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Many(keys) => keys.len(),
        }
    }

    fn contains(&self, key: &Key) -> bool {
        match self {
            Self::One(one) => one == key,
            Self::Many(keys) => keys.contains(key),
        }
    }

    fn insert(&mut self, key: Key) {
        match self {
            Self::One(one) if *one == key => {}
            Self::One(one) => *self = Self::Many([one.clone(), key].into()),
            Self::Many(keys) => drop(keys.insert(key)),
        }
    }

    /// Removes a key. Returns true if none is left.
    fn remove(&mut self, key: &Key) -> bool {
        match self {
            Self::One(one) => one == key,
            Self::Many(keys) => {
                keys.remove(key);
                keys.is_empty()
            }
        }
    }

    fn within<'a>(&'a self, range: &Range) -> impl Iterator<Item = &'a Key> + use<'a> {
        let (one, many) = match self {
            Self::One(key) => (std::ops::RangeBounds::contains(range, key).then_some(key), None),
            Self::Many(keys) => (None, Some(keys.range(range.clone()))),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }
}

impl LabelIndex {
    /// Updates the index for an object that was added (no `old`), updated, or removed (no `new`).
    pub(super) fn replace(&mut self, old: Option<&Entry>, new: Option<&Entry>) {
        if let (Some(old), Some(new)) = (old, new)
            && old.labels_json() == new.labels_json()
        {
            return;
        }
        if let Some(old) = old {
            for (label, value) in old.labels().iter() {
                self.remove(label, value, old.key());
            }
        }
        if let Some(new) = new {
            for (label, value) in new.labels().iter() {
                self.insert(label, value, new.key());
            }
        }
    }

    fn insert(&mut self, label: &str, value: &str, key: &Key) {
        // `entry` would allocate a key for a label that already exists.
        let values = match self.labels.get_mut(label) {
            Some(values) => values,
            None => self.labels.entry(label.into()).or_default(),
        };
        match values.get_mut(value) {
            Some(keys) => keys.insert(key.clone()),
            None => drop(values.insert(value.into(), Keys::One(key.clone()))),
        }
    }

    fn remove(&mut self, label: &str, value: &str, key: &Key) {
        let Some(values) = self.labels.get_mut(label) else { return };
        if values.get_mut(value).is_some_and(|keys| keys.remove(key)) {
            values.remove(value);
        }
        if values.is_empty() {
            self.labels.remove(label);
        }
    }

    /// Reduces a selector to what is left to check, given the number of objects in the store.
    pub(super) fn plan<'s>(&self, selector: &'s LabelSelector, objects: usize) -> Plan<'s> {
        let mut requirements: Vec<(usize, &Requirement)> = Vec::new();
        let mut exclusions = Vec::new();
        for requirement in selector.requirements() {
            match self.count(requirement) {
                // All objects have it.
                Some(count) if count == objects => {}
                Some(count) => requirements.push((count, requirement)),
                None => exclusions.push(requirement),
            }
        }
        requirements.sort_by_key(|(count, _)| *count);
        let mut requirements = requirements.into_iter().map(|(_, requirement)| requirement);
        let first = requirements.next();
        Plan { first, others: requirements.chain(exclusions).collect() }
    }

    /// The keys that satisfy a requirement, in order.
    pub(super) fn keys<'a>(&'a self, requirement: &'a Requirement, range: &Range) -> Vec<&'a Key> {
        let mut keys: Vec<&Key> = self.sets(requirement).flat_map(|keys| keys.within(range)).collect();
        // The keys of several values interleave. Each value's keys are in order, which a stable sort makes use of.
        keys.sort();
        keys
    }

    /// Whether an object satisfies all requirements.
    pub(super) fn matches<'s>(
        &self,
        requirements: impl IntoIterator<Item = &'s Requirement>,
        entry: &Entry,
    ) -> bool {
        requirements.into_iter().all(|requirement| match requirement {
            Requirement::In(..) => self.sets(requirement).any(|keys| keys.contains(entry.key())),
            Requirement::NotIn(label, values) => {
                !self.find(label, values).any(|keys| keys.contains(entry.key()))
            }
            Requirement::Exists(label) => self.labels.contains_key(&**label) && entry.labels().has(label),
            Requirement::Absent(label) => !self.labels.contains_key(&**label) || !entry.labels().has(label),
        })
    }

    /// The number of objects that satisfy a requirement; `None` if it excludes objects.
    fn count(&self, requirement: &Requirement) -> Option<usize> {
        match requirement {
            Requirement::In(..) | Requirement::Exists(_) => Some(self.sets(requirement).map(Keys::len).sum()),
            Requirement::NotIn(..) | Requirement::Absent(_) => None,
        }
    }

    /// The key sets of a requirement that selects objects, one per value.
    fn sets<'a>(&'a self, requirement: &'a Requirement) -> Box<dyn Iterator<Item = &'a Keys> + 'a> {
        match requirement {
            Requirement::In(label, values) => Box::new(self.find(label, values)),
            Requirement::Exists(label) => {
                Box::new(self.labels.get(&**label).into_iter().flat_map(BTreeMap::values))
            }
            Requirement::NotIn(..) | Requirement::Absent(_) => Box::new(std::iter::empty()),
        }
    }

    /// The key sets of the values of a label. No key is in two of them.
    fn find<'a>(&'a self, label: &str, values: &'a [String]) -> impl Iterator<Item = &'a Keys> + use<'a> {
        let known = self.labels.get(label);
        values.iter().filter_map(move |value| known?.get(&**value))
    }
}
