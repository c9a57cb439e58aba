//! Defaults of Secret, Namespace, LimitRange and ResourceQuota.

use serde_json::Value;

use super::pods::resources::round_up;
use kubewright_apimachinery::meta::bytes;
use kubewright_apimachinery::object::Fields as _;

/// Merges the write-only `stringData` into `data`. It takes precedence.
pub(super) fn secret(object: &mut Value) {
    object.default_at("type", "Opaque");
    let Some(Value::Object(texts)) = object.remove_at("stringData") else { return };
    for (key, text) in texts {
        let encoded = bytes::encode(text.as_str().unwrap_or_default().as_bytes());
        object.object_mut("data").insert(key, encoded.into());
    }
}

pub(super) fn namespace(object: &mut Value) {
    let name = object.str_at("metadata.name").to_owned();
    // With generateName the label is added after the name is generated.
    if !name.is_empty() {
        object.object_mut("metadata.labels").insert("kubernetes.io/metadata.name".to_owned(), name.into());
    }
    object.default_at("status.phase", "Active");
}

pub(super) fn limit_range(object: &mut Value) {
    object.list_mut("spec.limits").into_iter().flatten().for_each(limit);
}

/// One limit of a LimitRange. For containers, missing values are derived from the given ones.
fn limit(item: &mut Value) {
    for name in ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"] {
        round_up(item, name);
    }
    if item.str_at("type") != "Container" {
        return;
    }
    for (from, to) in [("max", "default"), ("default", "defaultRequest"), ("min", "defaultRequest")] {
        for (name, quantity) in item.map_at(from).clone() {
            item.object_mut(to).entry(name).or_insert(quantity);
        }
    }
}

pub(super) fn resource_quota(object: &mut Value) {
    for path in ["spec.hard", "status.hard", "status.used"] {
        round_up(object, path);
    }
}
