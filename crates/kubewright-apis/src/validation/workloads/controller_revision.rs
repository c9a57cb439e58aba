//! Validation of ControllerRevision.

use serde_json::Value;

use super::nonnegative;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::meta;
use kubewright_apimachinery::object::Fields as _;

pub(super) fn create(object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    errors.extend(nonnegative(object, "revision", &Path::root()));
    let data = object.at("data");
    if data.is_null() {
        errors.push(FieldError::required(&Path::new("data"), "data is mandatory"));
    } else if !data.is_object() {
        errors.push(FieldError::required(&Path::new("data"), "data must be a valid JSON object"));
    }
    errors
}

pub(super) fn update(new: &Value, old: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    errors.extend(nonnegative(new, "revision", &Path::root()));
    errors.extend(meta::immutable(new.at("data"), old.at("data"), &Path::new("data")));
    errors
}
