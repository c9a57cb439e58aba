//! ResourceClaim, and device requests, which ResourceClaimTemplates have too.

mod device_requests;

use serde_json::Value;

use crate::kinds::KindRules;
use crate::strategy::{keep, reset_status};
use crate::table::row::{Row, joined};
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::json;
use kubewright_apimachinery::meta;
use kubewright_apimachinery::object::Fields as _;

pub(super) use device_requests::{claim_spec, default_devices};

pub(crate) const RULES: KindRules = KindRules {
    kind: "ResourceClaim",
    defaults: |object| default_devices(object, "spec.devices"),
    prepare_create: reset_status,
    prepare_update: |new, old| keep(new, old, "status"),
    validate,
    validate_update: |new, old| {
        let mut errors = validate(new);
        errors.extend(spec_changed(new, old));
        errors
    },
    cells,
    ..super::GROUP
};

fn validate(object: &Value) -> ErrorList {
    claim_spec(object.at("spec"), &Path::new("spec"))
}

/// The spec of a claim, or of its template, is immutable.
pub(super) fn spec_changed(new: &Value, old: &Value) -> Option<FieldError> {
    (new.at("spec") != old.at("spec")).then(|| {
        let shown = json::to_string(new.at("spec"));
        FieldError::invalid_printed(&Path::new("spec"), shown, meta::IMMUTABLE)
    })
}

fn cells(row: &Row<'_>) -> Vec<Value> {
    let is_allocated = row.has("status.allocation");
    let states = [
        ("deleted", row.is_deleted()),
        ("pending", !is_allocated && !row.is_deleted()),
        ("allocated", is_allocated),
        ("reserved", is_allocated && !row.list("status.reservedFor").is_empty()),
    ];
    let state = joined(states.into_iter().filter(|(_, holds)| *holds).map(|(state, _)| state), ",");
    vec![row.name(), state.into(), row.age()]
}

#[cfg(test)]
mod tests;
