//! Registry strategies of built-in kinds.
//!
//! Run after decoding and defaulting and before validation. They clear fields that the caller may not set,
//! keep fields of the old object, and increment the generation. The server sets what depends on the clock or the
//! request: missing times of conditions, `status.lastPhaseTransitionTime` of a PersistentVolume, and the user of a
//! CertificateSigningRequest.

pub(crate) mod workload;

use serde_json::{Value, json};

use crate::kinds::rules;
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::object::{Fields as _, semantically_equal};

pub use crate::core::service::ip_families::default_ip_families as service_ip_families;

/// Prepares an object for creation.
pub fn prepare_create(gvk: Gvk<'_>, object: &mut Value) {
    (rules(gvk).prepare_create)(object);
}

/// Prepares an object for replacing `old`.
pub fn prepare_update(gvk: Gvk<'_>, new: &mut Value, old: &Value) {
    (rules(gvk).prepare_update)(new, old);
}

/// Prepares an update of a subresource such as `status`. Everything else is kept from `old`.
pub fn prepare_subresource(gvk: Gvk<'_>, subresource: &str, new: &mut Value, old: &Value) {
    (rules(gvk).prepare_subresource)(subresource, new, old);
}

/// Warnings on creation (`old` is none) or update.
pub fn warnings(gvk: Gvk<'_>, new: &Value, old: Option<&Value>) -> Vec<String> {
    (rules(gvk).warnings)(new, old)
}

/// Restores a field from the old object, or removes it if the old object has none.
pub(crate) fn keep(new: &mut Value, old: &Value, path: &str) {
    put(new, path, old.at(path).clone());
}

/// Sets a field, or removes it if the value is null.
pub(crate) fn put(object: &mut Value, path: &str, value: Value) {
    if value.is_null() {
        object.remove_at(path);
    } else {
        object.set_at(path, value);
    }
}

/// A status update keeps the spec.
pub(crate) fn keep_spec(subresource: &str, new: &mut Value, old: &Value) {
    if subresource == "status" {
        keep(new, old, "spec");
    }
}

/// A status update keeps the spec and most of the metadata.
pub(crate) fn keep_spec_and_metadata(subresource: &str, new: &mut Value, old: &Value) {
    if subresource != "status" {
        return;
    }
    keep(new, old, "spec");
    for name in ["labels", "annotations", "finalizers", "ownerReferences", "deletionTimestamp"] {
        keep(new, old, &format!("metadata.{name}"));
    }
}

/// A new object has an empty status.
pub(crate) fn reset_status(object: &mut Value) {
    object.set_at("status", json!({}));
}

/// A new object has generation 1.
pub(crate) fn start_generation(object: &mut Value) {
    object.set_at("metadata.generation", 1);
}

/// A new object has an empty status and generation 1.
pub(crate) fn reset_status_and_generation(object: &mut Value) {
    reset_status(object);
    start_generation(object);
}

/// Keeps the status, and increments the generation if the spec has changed.
pub(crate) fn keep_status_and_count(new: &mut Value, old: &Value) {
    keep(new, old, "status");
    count_spec(new, old);
}

/// Increments the generation if the spec has changed.
pub(crate) fn count_spec(new: &mut Value, old: &Value) {
    let changed = !semantically_equal(new.at("spec"), old.at("spec"));
    count_generation(new, old, changed);
}

/// Sets the generation of the old object, incremented if `changed`.
pub(crate) fn count_generation(new: &mut Value, old: &Value, changed: bool) {
    let generation = old.int_at("metadata.generation").unwrap_or_default().saturating_add(i64::from(changed));
    new.set_at("metadata.generation", generation);
}

/// Increments the generation if the field at `path` has changed. Otherwise leaves it as it is.
pub(crate) fn count_change(new: &mut Value, old: &Value, path: &str) {
    if !same(new.at(path), old.at(path)) {
        new.set_at(
            "metadata.generation",
            old.int_at("metadata.generation").unwrap_or_default().saturating_add(1),
        );
    }
}

/// Whether two values are equal if an empty list equals an absent one.
fn same(new: &Value, old: &Value) -> bool {
    match (new, old) {
        (Value::Object(new), Value::Object(old)) => {
            let same_at = |name: &String| {
                same(new.get(name).unwrap_or(&Value::Null), old.get(name).unwrap_or(&Value::Null))
            };
            new.keys().all(same_at) && old.keys().all(same_at)
        }
        (Value::Array(new), Value::Array(old)) => {
            new.len() == old.len() && new.iter().zip(old).all(|(new, old)| same(new, old))
        }
        (Value::Array(items), Value::Null) | (Value::Null, Value::Array(items)) => items.is_empty(),
        _ => new == old,
    }
}
