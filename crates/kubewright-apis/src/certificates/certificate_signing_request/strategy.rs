//! Strategy of CertificateSigningRequest.
//!
//! The server sets the user, and times of conditions that are neither given nor kept.

use serde_json::{Value, json};

use crate::strategy::keep;
use kubewright_apimachinery::object::Fields as _;

/// Clears the user fields and the conditions of a new request.
pub(super) fn prepare_create(object: &mut Value) {
    for name in ["username", "uid", "groups", "extra"] {
        object.remove_at(&format!("spec.{name}"));
    }
    object.set_at("status", json!({}));
}

/// Prepares an update of `status`. Approval conditions are kept.
pub(super) fn prepare_status(new: &mut Value, old: &Value) {
    for name in ["Approved", "Denied"] {
        keep_conditions(new, old, name);
    }
    keep_transition_times(new, old);
}

/// Prepares an update of `approval`. Only conditions change.
pub(super) fn prepare_approval(new: &mut Value, old: &Value) {
    keep_transition_times(new, old);
    let conditions = new.at("status.conditions").clone();
    keep(new, old, "spec");
    keep(new, old, "status");
    if conditions.is_null() {
        new.remove_at("status.conditions");
    } else {
        new.set_at("status.conditions", conditions);
    }
}

/// Restores the conditions of a type if their number is the same. Otherwise validation rejects the update.
fn keep_conditions(new: &mut Value, old: &Value, name: &str) {
    let of_type = |condition: &&Value| condition.str_at("type") == name;
    let old: Vec<&Value> = old.list_at("status.conditions").iter().filter(of_type).collect();
    if new.list_at("status.conditions").iter().filter(of_type).count() != old.len() {
        return;
    }
    let new = new.list_mut("status.conditions").into_iter().flatten().filter(|c| c.str_at("type") == name);
    for (new, old) in new.zip(old) {
        *new = old.clone();
    }
}

/// Keeps the transition time of a condition whose status is unchanged.
fn keep_transition_times(new: &mut Value, old: &Value) {
    for condition in new.list_mut("status.conditions").into_iter().flatten() {
        if condition.has("lastTransitionTime") {
            continue;
        }
        let same = |old: &&Value| {
            ["type", "status"].iter().all(|name| old.str_at(name) == condition.str_at(name))
                && old.has("lastTransitionTime")
        };
        if let Some(old) = old.list_at("status.conditions").iter().find(same) {
            condition.set_at("lastTransitionTime", old["lastTransitionTime"].clone());
        }
    }
}
