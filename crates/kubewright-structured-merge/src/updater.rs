//! Who owns what after a write, and what an applied configuration makes of an object.
//!
//! Pure structured merge: no rules about metadata, names or times here, those are [`super::manager`]'s. Sets of
//! entries in other versions are compared in their version.

use serde_json::Value;

use super::compare::{Comparison, compare, compare_structured};
use super::managed::{Entry, ManagedFields, Manager, Operation};
use super::merge::merge;
use super::path::{Element, equal};
use super::reconcile::reconcile;
use super::remove::remove;
use super::reset::Reset;
use super::schema::Schema;
use super::set::{Set, path_text};
use super::typed::field_set;

/// The versions that a kind has, as far as the owners of an object name them.
pub trait Versions {
    /// The schema of a version.
    fn schema(&self, api_version: &str) -> Result<Schema<'_>, ConvertError>;
    /// The object in another version.
    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConvertError>;
}

/// An object has no form in a version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConvertError {
    /// The version is not known any more. Its owners are forgotten.
    #[error("the version is not known")]
    Missing,
    /// The conversion failed.
    #[error("{0}")]
    Failed(String),
}

/// A kind with one version.
#[derive(Debug, Clone, Copy)]
pub struct OneVersion<'s> {
    /// The version.
    pub api_version: &'s str,
    /// Its schema.
    pub schema: Schema<'s>,
}

impl Versions for OneVersion<'_> {
    fn schema(&self, api_version: &str) -> Result<Schema<'_>, ConvertError> {
        if api_version == self.api_version { Ok(self.schema) } else { Err(ConvertError::Missing) }
    }

    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConvertError> {
        self.schema(api_version).map(|_| object.clone())
    }
}

/// A field that another manager owns with another value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The owner, as messages name it: `"kubectl" using v1`.
    pub manager: String,
    /// The field.
    pub path: Vec<Element>,
    /// By which owners are sorted.
    identifier: String,
}

impl Conflict {
    /// The field as messages name it: `.spec.replicas`.
    pub fn field(&self) -> String {
        path_text(&self.path)
    }

    pub(crate) fn is_of_same_manager(&self, other: &Self) -> bool {
        self.identifier == other.identifier
    }
}

/// Why a merge failed.
#[derive(Debug)]
pub(crate) enum MergeError {
    Conflicts(Vec<Conflict>),
    Failed(String),
}

impl MergeError {
    fn failed(step: &str, error: &ConvertError) -> Self {
        Self::Failed(format!("{step}: {error}"))
    }
}

pub(crate) struct Updater<'a> {
    pub(crate) versions: &'a dyn Versions,
    pub(crate) reset: &'a Reset,
    /// That of the request, and of all objects that are handed in.
    pub(crate) api_version: &'a str,
    pub(crate) schema: Schema<'a>,
}

impl Updater<'_> {
    /// The fields that a write changed. They are taken from everybody; the caller gives them to the writer.
    pub(crate) fn update(
        &self,
        live: &Value,
        new: &Value,
        managed: &mut ManagedFields,
    ) -> Result<Set, MergeError> {
        self.reconcile(managed)?;
        let changes = self.settle(live, new, managed, None, true)?;
        let mut set = changes.modified;
        set.unite(changes.added);
        Ok(set)
    }

    /// The object with what `wanted` says, without what `manager` gave up and nobody else owns. Nothing, if
    /// that is what it was.
    pub(crate) fn apply(
        &self,
        live: &Value,
        wanted: &Value,
        managed: &mut ManagedFields,
        manager: &Manager,
        force: bool,
    ) -> Result<Option<Value>, MergeError> {
        self.reconcile(managed)?;
        let merged = merge(self.schema, live.clone(), wanted);
        let mut set = field_set(self.schema.ty(), wanted);
        self.reset.filter(self.api_version, &mut set);
        let position = managed.position(manager, self.api_version);
        let last = position.map(|at| managed.entries.swap_remove(at));
        managed.entries.push(Entry {
            manager: manager.clone(),
            api_version: self.api_version.to_owned(),
            time: last.as_ref().and_then(|last| last.time.clone()),
            fields: set,
        });
        let own = managed.entries.len() - 1;
        let new = self.prune(merged, managed, own, last.as_ref())?;
        self.settle(live, &new, managed, Some(own), force)?;
        Ok(if *live == new || equal(live, &new) { None } else { Some(new) })
    }

    /// Brings sets into line with the schemas, and forgets owners in versions that are gone.
    fn reconcile(&self, managed: &mut ManagedFields) -> Result<(), MergeError> {
        let mut failed = None;
        managed.entries.retain_mut(|entry| match self.schema_of(&entry.api_version) {
            Ok(schema) => {
                reconcile(schema.ty(), &mut entry.fields);
                true
            }
            Err(ConvertError::Missing) => false,
            Err(ConvertError::Failed(error)) => {
                failed.get_or_insert(error);
                true
            }
        });
        failed.map_or(Ok(()), |error| Err(MergeError::Failed(error)))
    }

    /// Takes what changed between `old` and `new` from all but `own`, or says whose it is.
    fn settle(
        &self,
        old: &Value,
        new: &Value,
        managed: &mut ManagedFields,
        own: Option<usize>,
        force: bool,
    ) -> Result<Comparison, MergeError> {
        // Only what is applied comes as plain JSON; everything else is a Go struct upstream.
        let compare_in = if own.is_some() { compare } else { compare_structured };
        let mut here = compare_in(self.schema, old, new);
        self.reset.filter_all(self.api_version, &mut here);
        let mut others: Vec<(String, Option<Comparison>)> = Vec::new();
        let mut conflicts = Vec::new();
        let mut forgotten = Vec::new();
        for (at, entry) in managed.entries.iter().enumerate() {
            if own == Some(at) {
                continue;
            }
            let version = entry.api_version.as_str();
            if version != self.api_version && !others.iter().any(|(known, _)| known == version) {
                others.push((version.to_owned(), self.compare_as(version, old, new)?));
            }
            let changes = match others.iter().find(|(known, _)| known == version) {
                None => &here,
                Some((_, Some(changes))) => changes,
                Some((_, None)) => {
                    forgotten.push(at);
                    continue;
                }
            };
            let mut taken = entry.fields.intersection(&changes.modified);
            taken.unite(entry.fields.intersection(&changes.added));
            if !taken.is_empty() {
                conflicts.push((at, taken));
            }
        }
        if !force && !conflicts.is_empty() {
            return Err(MergeError::Conflicts(list_conflicts(managed, conflicts)));
        }
        for (at, taken) in conflicts {
            managed.entries[at].fields.subtract(&taken);
        }
        for (at, entry) in managed.entries.iter_mut().enumerate() {
            let changes = others.iter().find(|(known, _)| *known == entry.api_version);
            let changes = changes.map_or(Some(&here), |(_, changes)| changes.as_ref());
            if own != Some(at)
                && let Some(changes) = changes
            {
                entry.fields.subtract(&changes.removed);
            }
        }
        let mut at = 0;
        managed.entries.retain(|_| {
            at += 1;
            !forgotten.contains(&(at - 1))
        });
        managed.drop_empty();
        Ok(here)
    }

    /// The changes as another version has them; nothing, if it is gone.
    fn compare_as(&self, version: &str, old: &Value, new: &Value) -> Result<Option<Comparison>, MergeError> {
        let convert = |object: &Value, which: &str| match self.versions.convert(object, version) {
            Ok(object) => Ok(Some(object)),
            Err(ConvertError::Missing) => Ok(None),
            Err(error) => Err(MergeError::failed(&format!("failed to convert {which} object"), &error)),
        };
        let (Some(old), Some(new)) = (convert(old, "old")?, convert(new, "new")?) else {
            return Ok(None);
        };
        let schema =
            self.schema_of(version).map_err(|error| MergeError::failed("failed to convert", &error))?;
        let mut changes = compare_structured(schema, &old, &new);
        self.reset.filter_all(version, &mut changes);
        Ok(Some(changes))
    }

    /// Removes what the manager applied last time, does not apply now, and nobody else owns.
    fn prune(
        &self,
        merged: Value,
        managed: &ManagedFields,
        own: usize,
        last: Option<&Entry>,
    ) -> Result<Value, MergeError> {
        let Some(last) = last.filter(|last| !last.fields.is_empty()) else {
            return Ok(merged);
        };
        if last.api_version == self.api_version {
            // Most applies give nothing up.
            if last.fields.is_subset(&managed.entries[own].fields) {
                return Ok(merged);
            }
        }
        let version = last.api_version.as_str();
        let Some(merged_then) = self.convert(&merged, self.api_version, version)? else {
            return Ok(merged);
        };
        let schema =
            self.schema_of(version).map_err(|error| MergeError::failed("failed to convert", &error))?;
        let mut last_set = last.fields.clone();
        last_set.ensure_named_fields(Some(schema.ty()));
        let mut pruned = merged_then.clone();
        remove(schema.ty(), &mut pruned, &last_set);
        let (pruned, pruned_version) = self.add_back_owned(&merged_then, pruned, version, managed)?;
        let Some(pruned) = self.convert(&pruned, &pruned_version, version)? else {
            return Ok(merged);
        };
        // What was not this manager's to begin with stays, even if nobody owns it.
        let mut gone = named_set(schema, &merged_then);
        gone.subtract(&named_set(schema, &pruned));
        let gone = gone.intersection(&last_set);
        let mut result = merged_then;
        remove(schema.ty(), &mut result, &gone);
        match self.convert(&result, version, self.api_version)? {
            Some(result) => Ok(result),
            None => Err(MergeError::failed("failed to prune fields", &ConvertError::Missing)),
        }
    }

    /// Adds back what some manager owns, version by version. The object, and the version that it is in now.
    fn add_back_owned(
        &self,
        merged: &Value,
        pruned: Value,
        version: &str,
        managed: &ManagedFields,
    ) -> Result<(Value, String), MergeError> {
        let mut owned: Vec<(String, Set)> = Vec::new();
        for entry in &managed.entries {
            match owned.iter_mut().find(|(version, _)| *version == entry.api_version) {
                Some((_, set)) => set.unite(entry.fields.clone()),
                None => owned.push((entry.api_version.clone(), entry.fields.clone())),
            }
        }
        // The version of the object comes first, so that it can be converted.
        owned.sort_by(|a, b| (a.0 != version, &a.0).cmp(&(b.0 != version, &b.0)));
        let (mut merged, mut pruned, mut current) = (merged.clone(), pruned, version.to_owned());
        for (version, mut set) in owned {
            let (Some(all), Some(less)) =
                (self.convert(&merged, &current, &version)?, self.convert(&pruned, &current, &version)?)
            else {
                continue;
            };
            let schema =
                self.schema_of(&version).map_err(|error| MergeError::failed("failed to convert", &error))?;
            set.ensure_named_fields(Some(schema.ty()));
            let mut gone = named_set(schema, &all);
            gone.subtract(&named_set(schema, &less));
            gone.subtract(&set);
            pruned = all.clone();
            remove(schema.ty(), &mut pruned, &gone);
            (merged, current) = (all, version);
        }
        Ok((pruned, current))
    }

    fn schema_of(&self, version: &str) -> Result<Schema<'_>, ConvertError> {
        if version == self.api_version { Ok(self.schema) } else { self.versions.schema(version) }
    }

    fn convert(&self, object: &Value, from: &str, to: &str) -> Result<Option<Value>, MergeError> {
        if from == to {
            return Ok(Some(object.clone()));
        }
        match self.versions.convert(object, to) {
            Ok(object) => Ok(Some(object)),
            Err(ConvertError::Missing) => Ok(None),
            Err(error) => Err(MergeError::failed("failed to convert object", &error)),
        }
    }
}

fn named_set(schema: Schema<'_>, object: &Value) -> Set {
    let mut set = field_set(schema.ty(), object);
    set.ensure_named_fields(Some(schema.ty()));
    set
}

fn list_conflicts(managed: &ManagedFields, conflicts: Vec<(usize, Set)>) -> Vec<Conflict> {
    let mut list = Vec::new();
    for (at, set) in conflicts {
        let entry = &managed.entries[at];
        let (manager, identifier) = (entry.printed(), entry.identifier());
        set.each_path(&mut |path| {
            list.push(Conflict {
                manager: manager.clone(),
                path: path.to_vec(),
                identifier: identifier.clone(),
            });
        });
    }
    // Stable: the fields of one owner stay in their order.
    list.sort_by(|a, b| a.identifier.cmp(&b.identifier));
    list
}

impl Manager {
    /// Whoever applies under this name.
    pub(crate) fn applying(name: &str, subresource: &str) -> Self {
        Self { name: name.to_owned(), operation: Operation::Apply, subresource: subresource.to_owned() }
    }

    /// Whoever writes otherwise under this name.
    pub(crate) fn updating(name: &str, subresource: &str) -> Self {
        Self { name: name.to_owned(), operation: Operation::Update, subresource: subresource.to_owned() }
    }
}
