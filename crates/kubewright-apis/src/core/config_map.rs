//! ConfigMap.

use serde_json::Value;

use crate::kinds::KindRules;
use crate::quota::Quota;
use crate::table::row::Row;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::meta::{self, Check, bytes};
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

pub(crate) const RULES: KindRules = KindRules {
    kind: "ConfigMap",
    update_checks: &[Check::Update, Check::New],
    validate,
    validate_update,
    cells,
    quota: Some(&Quota::counted("configmaps")),
    ..super::GROUP
};

/// Maximum total size of the values in bytes, also of a Secret.
pub(super) const MAX_SIZE: usize = 1024 * 1024;

const IMMUTABLE: &str = "field is immutable when `immutable` is set";

fn validate(object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let binary = object.map_at("binaryData");
    let path = Path::new("data");
    let mut size = 0;
    for (key, value) in object.map_at("data") {
        let path = path.key(key);
        errors.extend(meta::invalid(&path, key, names::config_map_key(key)));
        if binary.contains_key(key) {
            errors.push(FieldError::invalid(&path, key.as_str(), "duplicate of key present in binaryData"));
        }
        size += value.as_str().unwrap_or_default().len();
    }
    let path = Path::new("binaryData");
    for (key, value) in binary {
        errors.extend(meta::invalid(&path.key(key), key, names::config_map_key(key)));
        size += bytes::length(value.as_str().unwrap_or_default());
    }
    if size > MAX_SIZE {
        // Upstream refers to the whole object by an empty key.
        errors.push(FieldError::too_long(&Path::root().key(""), MAX_SIZE));
    }
    errors
}

fn validate_update(new: &Value, old: &Value) -> ErrorList {
    let mut errors = immutable(new, old, &["data", "binaryData"]);
    errors.extend(validate(new));
    errors
}

/// Validates that an immutable ConfigMap or Secret does not change.
pub(super) fn immutable(new: &Value, old: &Value, fields: &[&str]) -> ErrorList {
    let mut errors = ErrorList::new();
    if !old.bool_at("immutable") {
        return errors;
    }
    if !new.bool_at("immutable") {
        errors.push(FieldError::forbidden(&Path::new("immutable"), IMMUTABLE));
    }
    for field in fields {
        if new.map_at(field) != old.map_at(field) {
            errors.push(FieldError::forbidden(&Path::new(field), IMMUTABLE));
        }
    }
    errors
}

fn cells(row: &Row<'_>) -> Vec<Value> {
    let count = row.object.map_at("data").len() + row.object.map_at("binaryData").len();
    vec![row.name(), count.into(), row.age()]
}

#[cfg(test)]
mod tests;
