//! The CRDs of a group and the names that they hold, so that a write settles only the CRDs that it affects.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use kubewright_apiextensions::crd;
use kubewright_apimachinery::object::Fields as _;
use serde_json::Value;

use crate::storage::{Revision, StoredObject};

/// The CRDs by group.
pub(crate) type Groups = BTreeMap<String, Group>;

/// The CRDs of one group.
#[derive(Default)]
pub(crate) struct Group {
    members: BTreeMap<Arc<str>, Member>,
    /// The CRDs that hold a name, according to `status.acceptedNames`.
    holders: HashMap<String, BTreeSet<Arc<str>>>,
    /// The CRDs whose names are not accepted.
    waiting: BTreeSet<Arc<str>>,
}

struct Member {
    revision: Revision,
    /// The CRD without its large schemas.
    outline: Value,
}

impl Group {
    /// Reads a CRD again after a write, or removes it. Returns whether it released names.
    pub(crate) fn read(&mut self, key: &Arc<str>, version: Option<&StoredObject>) -> bool {
        match version {
            Some(version)
                if self.members.get(key).is_some_and(|known| known.revision == version.revision) =>
            {
                false
            }
            Some(version) => self.set(key, version.revision, outline(version)),
            None => {
                self.waiting.remove(key);
                let gone = self.members.remove(key);
                gone.is_some_and(|gone| self.release(key, &gone.outline, &BTreeSet::new()))
            }
        }
    }

    /// Sets the state of a CRD. Returns whether it released names.
    pub(crate) fn set(&mut self, key: &Arc<str>, revision: Revision, outline: Value) -> bool {
        if crd::is_condition_true(&outline, "NamesAccepted") {
            self.waiting.remove(key);
        } else {
            self.waiting.insert(key.clone());
        }
        let held: BTreeSet<String> = names(outline.at("status.acceptedNames")).map(str::to_owned).collect();
        let old = self.members.insert(key.clone(), Member { revision, outline });
        let released = old.is_some_and(|old| self.release(key, &old.outline, &held));
        for name in held {
            self.holders.entry(name).or_default().insert(key.clone());
        }
        released
    }

    /// Removes a CRD from the holders of the names that it no longer holds.
    fn release(&mut self, key: &Arc<str>, old: &Value, held: &BTreeSet<String>) -> bool {
        let mut released = false;
        for name in names(old.at("status.acceptedNames")).filter(|name| !held.contains(*name)) {
            released = true;
            if let Some(holders) = self.holders.get_mut(name) {
                holders.remove(key);
                if holders.is_empty() {
                    self.holders.remove(name);
                }
            }
        }
        released
    }

    pub(crate) fn outline(&self, key: &str) -> Option<&Value> {
        self.members.get(key).map(|member| &member.outline)
    }

    /// The CRDs that hold a name that this CRD asks for.
    pub(crate) fn rivals(&self, outline: &Value) -> Vec<&Value> {
        let asked: BTreeSet<&str> = names(outline.at("spec.names")).collect();
        let holders: BTreeSet<&Arc<str>> =
            asked.into_iter().filter_map(|name| self.holders.get(name)).flatten().collect();
        holders.into_iter().filter_map(|key| self.outline(key)).collect()
    }

    /// The CRDs whose names may be accepted when names are released.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &Arc<str>> {
        self.waiting.iter()
    }
}

fn outline(version: &StoredObject) -> Value {
    let mut outline = version.object();
    outline.object_mut("spec").remove("versions");
    outline.object_mut("metadata").remove("managedFields");
    outline
}

fn names(names: &Value) -> impl Iterator<Item = &str> {
    let single = ["plural", "singular", "kind", "listKind"].map(|field| names.str_at(field));
    let short = names.list_at("shortNames").iter().filter_map(Value::as_str);
    single.into_iter().chain(short).filter(|name| !name.is_empty())
}
