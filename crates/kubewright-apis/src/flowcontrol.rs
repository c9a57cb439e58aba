//! Kinds of flowcontrol.apiserver.k8s.io.

pub(crate) mod flow_schema;
pub(crate) mod priority_level_configuration;

use std::collections::HashSet;

use serde_json::Value;

use crate::kinds::KindRules;
use crate::registry::RegistryRules;
use crate::reset_fields;
use crate::strategy::{count_change, keep, reset_status_and_generation};
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::meta::Check;
use kubewright_apimachinery::object::Fields as _;

/// Rules that both kinds share.
const GROUP: KindRules = KindRules {
    group: "flowcontrol.apiserver.k8s.io",
    prepare_create: reset_status_and_generation,
    prepare_update: |new, old| {
        keep(new, old, "status");
        count_change(new, old, "spec");
    },
    prepare_subresource: |subresource, new, old| {
        if subresource == "status" {
            keep(new, old, "spec");
            keep_metadata(new, old);
        }
    },
    kube_finalizers: true,
    update_checks: &[Check::New],
    subresource_checks: |_| &[],
    validate_subresource: |subresource, new, _| match subresource {
        "status" => status(new),
        _ => ErrorList::new(),
    },
    reset_fields: reset_fields::metadata_and_spec,
    registry: RegistryRules::CONDITIONAL_UPDATE,
    ..KindRules::DEFAULT
};

/// Restores the metadata of the old object, except managedFields.
fn keep_metadata(new: &mut Value, old: &Value) {
    let managed = new.remove_at("metadata.managedFields");
    keep(new, old, "metadata");
    match managed {
        Some(managed) => new.set_at("metadata.managedFields", managed),
        None => _ = new.remove_at("metadata.managedFields"),
    }
}

/// Validates the status of either kind.
fn status(object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = Path::new("status").child("conditions");
    let conditions = object.list_at("status.conditions");
    let mut seen = HashSet::new();
    for (i, condition) in conditions.iter().enumerate() {
        let path = path.index(i).child("type");
        let kind = condition.str_at("type");
        if !seen.insert(kind) {
            errors.push(FieldError::duplicate(&path, kind));
        }
        if kind.is_empty() {
            errors.push(FieldError::required(&path, "must not be empty"));
        }
    }
    errors
}
