//! Ownership changes of a write, and the result of an apply.
//!
//! Pure structured merge: [`super::manager`] handles metadata, names and times. Entries in other API versions
//! are compared in their own version.

use serde_json::Value;

use super::compare::{Comparison, compare, compare_structured};
use super::managed::{Entry, ManagedFields, Manager, Operation};
use super::merge::{is_merged, merge};
use super::path::{Element, equal};
use super::reconcile::reconcile;
use super::remove::remove;
use super::reset::Reset;
use super::schema::Schema;
use super::set::{Set, path_text};
use super::typed::field_set;

/// Access to the API versions of a kind that managedFields refer to.
pub trait Versions {
    /// The schema of an API version.
    fn schema(&self, api_version: &str) -> Result<Schema<'_>, ConvertError>;
    /// Converts the object to another API version.
    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConvertError>;
}

/// Why an object cannot be converted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConvertError {
    /// The API version no longer exists. Its entries are dropped.
    #[error("unknown API version")]
    Missing,
    /// The conversion failed.
    #[error("{0}")]
    Failed(String),
}

/// A kind with a single API version.
#[derive(Debug, Clone, Copy)]
pub struct OneVersion<'s> {
    /// The API version.
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

/// A field that another manager owns with a different value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The manager as messages show it: `"kubectl" using v1`.
    pub manager: String,
    /// The field.
    pub path: Vec<Element>,
    /// Sort key of managers.
    identifier: String,
}

impl Conflict {
    /// The field path as messages show it: `.spec.replicas`.
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
    /// The API version of the request and of all objects passed in.
    pub(crate) api_version: &'a str,
    pub(crate) schema: Schema<'a>,
}

impl Updater<'_> {
    /// Computes the fields that a write changed and removes them from all entries. The caller adds them to
    /// the writer's entry.
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

    /// Merges `wanted` into the object and removes fields that `manager` no longer applies and no other
    /// manager owns. Returns `None` if nothing changed.
    pub(crate) fn apply(
        &self,
        live: &Value,
        wanted: &Value,
        managed: &mut ManagedFields,
        manager: &Manager,
        force: bool,
    ) -> Result<Option<Value>, MergeError> {
        self.reconcile(managed)?;
        let mut set = field_set(self.schema.ty(), wanted);
        self.reset.filter(self.api_version, &mut set);
        let position = managed.position(manager, self.api_version);
        let last = position.map(|at| managed.entries.swap_remove(at));
        // Fast paths: most applies give up no field, and most applies of controllers change nothing.
        let superseded = last.as_ref().filter(|last| self.gives_up(last, &set));
        let one_version = managed.entries.iter().all(|entry| entry.api_version == self.api_version);
        let same = superseded.is_none() && one_version && is_merged(self.schema.ty(), live, wanted);
        managed.entries.push(Entry {
            manager: manager.clone(),
            api_version: self.api_version.to_owned(),
            time: last.as_ref().and_then(|last| last.time.clone()),
            fields: set,
        });
        if same {
            managed.drop_empty();
            return Ok(None);
        }
        let own = managed.entries.len() - 1;
        let merged = merge(self.schema, live.clone(), wanted);
        let new = match superseded {
            Some(last) => self.prune(merged, managed, last)?,
            None => merged,
        };
        self.settle(live, &new, managed, Some(own), force)?;
        Ok(if *live == new || equal(live, &new) { None } else { Some(new) })
    }

    /// Adapts field sets to the current schemas and drops entries in unknown API versions.
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

    /// Removes the fields that changed between `old` and `new` from all entries except `own`, or returns
    /// conflicts.
    fn settle(
        &self,
        old: &Value,
        new: &Value,
        managed: &mut ManagedFields,
        own: Option<usize>,
        force: bool,
    ) -> Result<Comparison, MergeError> {
        // Only applied configurations are untyped JSON; upstream decodes all other objects to Go structs.
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

    /// The changes in another API version; `None` if it no longer exists.
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

    /// Whether the manager may have applied fields before that `now` does not contain.
    fn gives_up(&self, last: &Entry, now: &Set) -> bool {
        !last.fields.is_empty() && (last.api_version != self.api_version || !last.fields.is_subset(now))
    }

    /// Removes the fields that the manager applied before, does not apply now, and no other manager owns.
    fn prune(&self, merged: Value, managed: &ManagedFields, last: &Entry) -> Result<Value, MergeError> {
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
        // Keep fields that this manager did not own before, even without an owner.
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

    /// Adds back the fields that some manager owns, version by version. Returns the object and its current
    /// API version.
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
        // Start with the object's current version, which needs no conversion.
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
    // Stable sort: keeps the order of fields per manager.
    list.sort_by(|a, b| a.identifier.cmp(&b.identifier));
    list
}

impl Manager {
    /// A manager that uses server-side apply.
    pub(crate) fn applying(name: &str, subresource: &str) -> Self {
        Self { name: name.to_owned(), operation: Operation::Apply, subresource: subresource.to_owned() }
    }

    /// A manager that uses other writes.
    pub(crate) fn updating(name: &str, subresource: &str) -> Self {
        Self { name: name.to_owned(), operation: Operation::Update, subresource: subresource.to_owned() }
    }
}
