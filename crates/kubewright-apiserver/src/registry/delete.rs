//! Deletion of an object: immediate, after finalizers, or after a grace period.
//!
//! A deletion is a [`Plan`] for the live object, which is then carried out. Requests call admission in between
//! ([`crate::endpoints::delete`]); the server's own deletions do not.

use std::sync::Arc;

use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::status::{ApiError, Qualified};
use kubewright_apimachinery::time;
use kubewright_apis::registry::GarbageCollection;
use serde_json::Value;

use super::resource::Resource;
use super::store::ObjectStore;
use super::write::MODIFIED;
use crate::after_commit::AfterCommit;
use crate::encoding::response;
use crate::request::options::{DeleteOptions, Propagation};
use crate::storage::{Expect, StoredObject};

/// The finalizer that keeps an owner until its dependents are orphaned.
pub(crate) const ORPHAN: &str = "orphan";
/// The finalizer that keeps an owner until its dependents are deleted.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";

/// Maximum number of attempts of a deletion after conflicts.
pub(crate) const TRIES: usize = 32;

/// The result of a deletion.
pub(crate) enum Deleted {
    /// This is the last state of the object.
    Removed(Value),
    /// The object waits for finalizers or for the end of its grace period.
    Waiting(Value),
}

/// How to delete an object.
pub(crate) enum Plan {
    /// Commit this state without removing the object.
    Keep(Value),
    /// Remove the object; `last` is its last state. If `mark` is set, that state is committed first.
    Remove { last: Value, mark: bool },
}

impl ObjectStore {
    /// Deletes an object on behalf of the server, without admission.
    pub(crate) fn delete_object(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
        options: &DeleteOptions,
        after: &mut AfterCommit,
    ) -> Result<Deleted, ApiError> {
        for _ in 0..TRIES {
            let current = self.latest(resource, namespace, name)?;
            let old = response::object(resource, &current);
            let plan = self.plan_delete(resource, &current, &old, name, options)?;
            if let Some(deleted) = self.carry_out(resource, &current, &old, plan, options, after) {
                return Ok(deleted);
            }
        }
        Err(ApiError::conflict(resource.qualified(), name, MODIFIED))
    }

    /// Deletes an instance of a terminating CRD.
    pub(crate) fn delete_instance(
        &self,
        resource: &Resource,
        version: &Arc<StoredObject>,
        after: &mut AfterCommit,
    ) {
        let (namespace, name) = version.namespace_and_name();
        if let Err(error) = self.delete_object(resource, namespace, name, &DeleteOptions::default(), after)
            && error.code != 404
        {
            tracing::warn!(
                %error,
                resource = resource.plural(),
                namespace,
                name,
                "failed to delete custom resource of terminating CRD"
            );
        }
    }

    /// Decides how an object is deleted.
    pub(crate) fn plan_delete(
        &self,
        resource: &Resource,
        current: &StoredObject,
        old: &Value,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Plan, ApiError> {
        check_preconditions(resource, name, old, options)?;
        let was_deleting = current.attributes.is_deleting();
        if !was_deleting {
            let now = time::format_rfc3339(self.clock.now());
            if let Some(marked) = resource.strategy.mark_deleted(old, &now) {
                return Ok(Plan::Keep(marked));
            }
        }
        let mut new = old.clone();
        set_finalizers(&mut new, &finalizers_after(resource, old, options));
        let rules = resource.rules();
        let grace = (rules.grace_period)(old, options.grace);
        if was_deleting {
            // A second deletion can only shorten the grace period.
            let old_grace = old.int_at("metadata.deletionGracePeriodSeconds");
            if options.grace.is_some() && grace < old_grace.unwrap_or_default() {
                self.mark(&mut new, old, grace);
            }
        } else if grace > 0 || has_finalizers(resource, &new) || rules.marks_before_removal {
            self.mark(&mut new, old, grace);
            (rules.prepare_delete)(&mut new);
        }
        resource.strategy.canonicalize(&mut new)?;
        if !is_removable(resource, &new, &new) {
            return Ok(Plan::Keep(new));
        }
        let mark = rules.marks_before_removal && new != *old;
        Ok(Plan::Remove { last: new, mark })
    }

    /// Commits a plan. `None` on a conflict.
    pub(crate) fn carry_out(
        &self,
        resource: &Resource,
        current: &Arc<StoredObject>,
        old: &Value,
        plan: Plan,
        options: &DeleteOptions,
        after: &mut AfterCommit,
    ) -> Option<Deleted> {
        let at = Expect::At(current.revision);
        match plan {
            Plan::Keep(new) if new == *old || options.dry_run => Some(Deleted::Waiting(new)),
            Plan::Keep(new) => {
                let version = self.put(resource, &current.key, at, new, after).ok()?;
                Some(Deleted::Waiting(response::object(resource, &version)))
            }
            Plan::Remove { last, .. } if options.dry_run => Some(Deleted::Removed(last)),
            Plan::Remove { last, mark } => {
                let marked = if mark {
                    self.put_without_steps(resource, &current.key, at, last).ok()?
                } else {
                    current.clone()
                };
                let version = self.remove(resource, &current.key, &marked, after).ok()?;
                Some(Deleted::Removed(response::object(resource, &version)))
            }
        }
    }

    /// Sets the deletion timestamp and increments the generation.
    fn mark(&self, object: &mut Value, old: &Value, grace: i64) {
        let now = self.clock.now();
        object.set_at("metadata.deletionTimestamp", time::format_rfc3339(now + grace));
        object.set_at("metadata.deletionGracePeriodSeconds", grace);
        if !old.has("metadata.deletionTimestamp")
            && let Some(generation) = old.int_at("metadata.generation").filter(|generation| *generation > 0)
        {
            object.set_at("metadata.generation", generation.saturating_add(1));
        }
    }
}

/// Whether an object that is being deleted may be removed now. `marks` has its deletion timestamp and grace period,
/// `object` its finalizers: in an update the first is the old object and the second the new one.
pub(crate) fn is_removable(resource: &Resource, marks: &Value, object: &Value) -> bool {
    marks.int_at("metadata.deletionGracePeriodSeconds").unwrap_or_default() == 0
        && !has_finalizers(resource, object)
}

/// Whether an object has finalizers.
fn has_finalizers(resource: &Resource, object: &Value) -> bool {
    !object.list_at("metadata.finalizers").is_empty() || (resource.rules().has_own_finalizers)(object)
}

/// The finalizers with those that the propagation policy adds or removes.
fn finalizers_after(resource: &Resource, old: &Value, options: &DeleteOptions) -> Vec<String> {
    let mut finalizers: Vec<String> =
        old.list_at("metadata.finalizers").iter().filter_map(|f| f.as_str().map(str::to_owned)).collect();
    let policy = resource.rules().garbage_collection;
    if policy == GarbageCollection::Unsupported {
        return finalizers;
    }
    let has =
        |name: &str| finalizers.iter().find(|f| *f == ORPHAN || *f == FOREGROUND).is_some_and(|f| f == name);
    let (orphan, foreground) = match (options.orphan_dependents, options.propagation) {
        (Some(orphan), _) => (orphan, false),
        (None, Some(propagation)) => {
            (propagation == Propagation::Orphan, propagation == Propagation::Foreground)
        }
        (None, None) if has(ORPHAN) => (true, false),
        (None, None) if has(FOREGROUND) => (false, true),
        (None, None) => (policy == GarbageCollection::Orphan, false),
    };
    finalizers.retain(|f| f != ORPHAN && f != FOREGROUND);
    if orphan {
        finalizers.push(ORPHAN.to_owned());
    }
    if foreground {
        finalizers.push(FOREGROUND.to_owned());
    }
    finalizers
}

fn set_finalizers(object: &mut Value, finalizers: &[String]) {
    if finalizers.is_empty() {
        object.object_mut("metadata").remove("finalizers");
    } else {
        object.set_at("metadata.finalizers", finalizers.to_vec());
    }
}

/// Checks the preconditions of a deletion.
pub(super) fn check_preconditions(
    resource: &Resource,
    name: &str,
    object: &Value,
    options: &DeleteOptions,
) -> Result<(), ApiError> {
    let uid = object.str_at("metadata.uid");
    let revision = object.str_at("metadata.resourceVersion");
    if resource.rules().own_preconditions {
        let given = [("UID", &options.uid, uid), ("ResourceVersion", &options.resource_version, revision)];
        for (what, given, current) in given {
            if let Some(given) = given.as_deref().filter(|given| *given != current) {
                let why = format!(
                    "Precondition failed: {what} in precondition: {given}, {what} in object meta: {current}"
                );
                return Err(ApiError::conflict(resource.qualified(), name, &why));
            }
        }
        return Ok(());
    }
    // Kinds with graceful deletion check preconditions first, and upstream names the kind instead of the
    // resource.
    let what = Qualified { group: resource.group(), name: resource.kind() };
    if let Some(wanted) = options.uid.as_deref().filter(|wanted| *wanted != uid) {
        let why = format!(
            "the UID in the precondition ({wanted}) does not match the UID in record ({uid}). The object might have \
             been deleted and then recreated"
        );
        return Err(ApiError::conflict(what, name, &why));
    }
    if let Some(wanted) = options.resource_version.as_deref().filter(|wanted| *wanted != revision) {
        let why = format!(
            "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record \
             ({revision}). The object might have been modified"
        );
        return Err(ApiError::conflict(what, name, &why));
    }
    Ok(())
}
