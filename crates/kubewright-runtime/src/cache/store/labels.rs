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

    /// The keys that satisfy the most selective requirement, in order, and the remaining requirements. `None` if all
    /// requirements only exclude objects.
    pub(super) fn candidates<'s>(
        &self,
        selector: &'s LabelSelector,
        range: &Range,
    ) -> Option<(Vec<Key>, Vec<&'s Requirement>)> {
        let requirements = selector.requirements();
        let sized = requirements.iter().enumerate().filter_map(|(at, it)| Some((self.count(it)?, at)));
        let (_, chosen) = sized.min()?;
        let mut keys: Vec<Key> =
            self.sets(&requirements[chosen]).flat_map(|keys| keys.within(range)).cloned().collect();
        // No key has two values, but the keys of several values interleave.
        if !keys.is_sorted() {
            keys.sort_unstable();
        }
        keys.dedup();
        let others = requirements.iter().enumerate().filter(|(at, _)| *at != chosen).map(|(_, it)| it);
        Some((keys, others.collect()))
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

    /// An upper bound of the objects that satisfy a requirement; `None` if it excludes objects.
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

    fn find<'a>(&'a self, label: &str, values: &'a [String]) -> impl Iterator<Item = &'a Keys> + use<'a> {
        let known = self.labels.get(label);
        values.iter().filter_map(move |value| known?.get(&**value))
    }
}
