//! Defaulting of built-in kinds, like upstream's `SetDefaults` functions.
//!
//! Defaults never overwrite a value, and defaulting is idempotent. Objects are already decoded, so every
//! value has the right type.

use serde_json::Value;

use crate::kinds::rules;
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::object::Fields as _;

/// Sets the defaults of a built-in kind.
pub fn apply(gvk: Gvk<'_>, object: &mut Value) {
    (rules(gvk).defaults)(object);
}

/// Default for integers that are not pointers in Go, where zero means unset.
pub(crate) fn zero_to(object: &mut Value, path: &str, default: i64) {
    if object.int_at(path).unwrap_or_default() == 0 {
        object.set_at(path, default);
    }
}

/// Sets a string that is absent or empty. Decoding leaves required strings empty.
pub(crate) fn default_text(object: &mut Value, path: &str, value: &str) {
    if object.str_at(path).is_empty() {
        object.set_at(path, value);
    }
}
