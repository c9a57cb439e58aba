//! Conversion between API versions of built-in kinds that differ in more than `apiVersion`.
//!
//! Conversion is lossless: fields that a version lacks are stored in annotations. The result has the same
//! always-present fields as a decoded object.

mod ordered;

use serde_json::Value;

pub(crate) use ordered::Ordered;

use crate::kinds::rules;
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::object::Fields as _;

/// Converts an object to kind `to`, which must be another version or view of the same kind. An object of that
/// version is returned unchanged.
pub fn convert(object: Value, to: Gvk<'_>) -> Value {
    let from = object.str_at("apiVersion");
    let api_version = to.api_version();
    if from == api_version {
        return object;
    }
    let mut object = match rules(to).convert {
        Some(convert) => convert(object),
        None => object,
    };
    object.set_at("apiVersion", api_version);
    object
}
