//! Validation of built-in kinds, with upstream's messages in upstream's order.
//!
//! Objects are already decoded and defaulted. Returns all errors, not only the first. On update, upstream often validates
//! an object twice, in the strategy and in the update validation. Errors then occur twice, as here.

pub(crate) mod conditions;
pub(crate) mod int_or_percent;
pub(crate) mod label_selector;
pub mod meta;
pub(crate) mod network;
pub(crate) mod printed;
pub(crate) mod resource_name;
pub(crate) mod workload;

use serde_json::Value;

use crate::kinds::rules;
use kubewright_apimachinery::field::{ErrorKind, ErrorList, FieldError, Path};
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::object::Fields as _;

/// Validates an object on creation.
pub fn create(gvk: Gvk<'_>, namespaced: bool, object: &Value) -> ErrorList {
    let mut errors = meta::create(gvk, namespaced, object);
    errors.extend((rules(gvk).validate)(object));
    errors
}

/// Validates an object that replaces `old`.
pub fn update(gvk: Gvk<'_>, namespaced: bool, new: &Value, old: &Value) -> ErrorList {
    let mut errors = meta::update(gvk, namespaced, new, old);
    errors.extend((rules(gvk).validate_update)(new, old));
    errors
}

/// Validates an update of a subresource such as `status` or `approval`.
pub fn update_subresource(
    gvk: Gvk<'_>,
    subresource: &str,
    namespaced: bool,
    new: &Value,
    old: &Value,
) -> ErrorList {
    let mut errors = meta::update_subresource(gvk, subresource, namespaced, new, old);
    errors.extend((rules(gvk).validate_subresource)(subresource, new, old));
    errors
}

/// Validates a review, which has a spec but no name.
pub fn review(gvk: Gvk<'_>, object: &Value) -> ErrorList {
    (rules(gvk).validate)(object)
}

/// Returns an error if a value is not one of the known ones. Upstream sorts most of these lists.
pub(crate) fn one_of(value: &str, known: &[&str], path: &Path) -> Option<FieldError> {
    (!known.contains(&value)).then(|| FieldError::not_supported(path, value, known))
}

/// Returns an error if a value is empty.
pub(crate) fn required(value: &str, path: &Path) -> Option<FieldError> {
    value.is_empty().then(|| FieldError::required(path, ""))
}

/// Returns an error if an integer is negative.
pub(crate) fn not_negative(object: &Value, name: &str, path: &Path) -> Option<FieldError> {
    let value = object.int_at(name).filter(|value| *value < 0)?;
    Some(FieldError::invalid(&path.child(name), value, "must be greater than or equal to 0"))
}

/// Returns an error for each negative number, in this order.
pub(crate) fn not_negative_all(object: &Value, names: &[&str], path: &Path) -> ErrorList {
    names.iter().filter_map(|name| not_negative(object, name, path)).collect()
}

/// The strings of a list.
pub(crate) fn strings<'a>(object: &'a Value, path: &str) -> Vec<&'a str> {
    object.list_at(path).iter().map(|item| item.as_str().unwrap_or_default()).collect()
}

/// [`FieldError::not_supported`] with a printed value.
pub(crate) fn not_supported_printed(path: &Path, value: String, supported: &[&str]) -> FieldError {
    FieldError { value: Some(value), ..FieldError::not_supported(path, Value::Null, supported) }
}

/// An invalid value that upstream does not print.
pub(crate) fn invalid_omitted(path: &Path, detail: &str) -> FieldError {
    FieldError { kind: ErrorKind::Invalid, value: None, ..FieldError::required(path, detail) }
}
