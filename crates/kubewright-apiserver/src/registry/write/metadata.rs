//! Metadata rules of writes.

use std::collections::HashSet;

use kubewright_apimachinery::json;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::status::ApiError;
use serde_json::Value;

use crate::registry::resource::Resource;

/// Checks that the namespaces of body and path match; a cluster-scoped object has none.
pub(crate) fn check_namespace(
    resource: &Resource,
    namespace: &str,
    object: &mut Value,
) -> Result<(), ApiError> {
    if !resource.namespaced() {
        object.object_mut("metadata").remove("namespace");
        return Ok(());
    }
    match object.str_at("metadata.namespace") {
        "" => object.set_at("metadata.namespace", namespace),
        given if given == namespace => {}
        _ => {
            return Err(ApiError::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
    }
    Ok(())
}

/// Checks that the names of body and path match.
pub(crate) fn check_name(object: &Value, name: &str) -> Result<(), ApiError> {
    match object.str_at("metadata.name") {
        "" => Err(ApiError::bad_request(format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        ))),
        given if given == name => Ok(()),
        given => Err(ApiError::bad_request(format!(
            "the name of the object ({given}) does not match the name on the URL ({name})"
        ))),
    }
}

/// Copies metadata that an update cannot remove from the old object.
pub(super) fn carry_metadata(new: &mut Value, old: &Value) {
    for path in ["metadata.uid", "metadata.deletionTimestamp", "metadata.deletionGracePeriodSeconds"] {
        if !new.has(path) && old.has(path) {
            new.set_at(path, old.at(path).clone());
        }
    }
    new.set_at("metadata.creationTimestamp", old.at("metadata.creationTimestamp").clone());
    new.object_mut("metadata").remove("selfLink");
    // Only the server sets the generation.
    match old.at("metadata.generation") {
        Value::Null => drop(new.object_mut("metadata").remove("generation")),
        generation => new.set_at("metadata.generation", generation.clone()),
    }
}

/// Clears fields that only the server sets, on the body of a POST.
pub(super) fn wipe_system_fields(object: &mut Value) {
    let Some(metadata) = object.at_mut("metadata").and_then(Value::as_object_mut) else { return };
    for field in ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
        metadata.remove(field);
    }
}

/// The text of [`dedup_owners`] for duplicates after admission.
pub(super) const AFTER_ADMISSION: &str = "contains duplicate entries after mutating admission happens";

/// Removes duplicate owner references. Returns upstream's warning.
pub(super) fn dedup_owners(object: &mut Value, what: &str) -> Option<String> {
    let owners = object.list_mut("metadata.ownerReferences")?;
    if owners.len() < 2 {
        return None;
    }
    let mut seen = HashSet::with_capacity(owners.len());
    let mut repeated: Vec<String> = Vec::new();
    owners.retain(|owner| {
        let new = seen.insert(json::to_vec(owner));
        if !new {
            repeated.push(owner.str_at("uid").to_owned());
        }
        new
    });
    (!repeated.is_empty()).then(|| {
        format!(
            ".metadata.ownerReferences {what}; API server dedups owner references in 1.20+, and may reject such \
             requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
            repeated.join(", ")
        )
    })
}
