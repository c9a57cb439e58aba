//! CSINode.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::core::persistent_volume::sources;
use crate::kinds::KindRules;
use crate::registry::RegistryRules;
use crate::table::row::Row;
use crate::validation::{not_negative, required, strings};
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::json;
use kubewright_apimachinery::meta::{self, Check};
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

pub(crate) const RULES: KindRules = KindRules {
    kind: "CSINode",
    update_checks: &[Check::New, Check::New],
    validate,
    validate_update: |new, old| {
        let mut errors = validate(new);
        errors.extend(validate(new));
        errors.extend(drivers_changed(new, old));
        errors
    },
    cells,
    registry: RegistryRules { returns_deleted: true, ..RegistryRules::CONDITIONAL_UPDATE },
    ..super::GROUP
};

const MAX_NODE_ID: usize = 256;

fn validate(object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = Path::new("spec").child("drivers");
    let mut seen = BTreeSet::new();
    for (i, driver) in object.list_at("spec.drivers").iter().enumerate() {
        let path = path.index(i);
        let name = driver.str_at("name");
        errors.extend(sources::driver_name(name, &path.child("name")));
        let id = driver.str_at("nodeID");
        errors.extend(required(id, &path.child("nodeID")));
        if id.len() > MAX_NODE_ID {
            let detail = format!("must be {MAX_NODE_ID} characters or less");
            errors.push(FieldError::invalid(&path.child("nodeID"), id, detail));
        }
        errors.extend(not_negative(driver.at("allocatable"), "count", &path.child("allocatable")));
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        }
        let mut keys = BTreeSet::new();
        for key in strings(driver, "topologyKeys") {
            errors.extend(required(key, &path));
            if !keys.insert(key) {
                errors.push(FieldError::duplicate(&path, key));
            }
            errors.extend(meta::invalid(&path, key, names::label_key(key)));
        }
    }
    errors
}

/// Drivers may be added and removed. Existing ones are immutable except for `allocatable`.
fn drivers_changed(new: &Value, old: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    for old in old.list_at("spec.drivers") {
        for new in new.list_at("spec.drivers").iter().filter(|new| new.str_at("name") == old.str_at("name")) {
            if ["nodeID", "topologyKeys"].iter().any(|name| new.at(name) != old.at(name)) {
                let printed = format!(
                    "{{\"Name\":{},\"NodeID\":{},\"TopologyKeys\":{},\"Allocatable\":null}}",
                    json::quote(new.str_at("name")),
                    json::quote(new.str_at("nodeID")),
                    json::to_string(new.at("topologyKeys"))
                );
                let path = Path::new("spec").child("drivers");
                errors.push(FieldError::invalid_printed(&path, printed, meta::IMMUTABLE));
            }
        }
    }
    errors
}

fn cells(row: &Row<'_>) -> Vec<Value> {
    vec![row.name(), row.count("spec.drivers"), row.age()]
}
