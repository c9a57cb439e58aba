//! VolumeAttributesClass.

use serde_json::Value;

use super::storage_class::{class_name, parameters, provisioner};
use crate::kinds::KindRules;
use crate::registry::RegistryRules;
use crate::table::row::Row;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::meta::Check;
use kubewright_apimachinery::object::Fields as _;

pub(crate) const RULES: KindRules = KindRules {
    kind: "VolumeAttributesClass",
    update_checks: &[Check::Update, Check::New],
    validate,
    validate_update,
    cells,
    registry: RegistryRules { returns_deleted: true, ..RegistryRules::DEFAULT },
    ..super::GROUP
};

fn validate(object: &Value) -> ErrorList {
    let mut errors = provisioner(object.str_at("driverName"), &Path::new("driverName"));
    let path = Path::new("parameters");
    errors.extend(parameters(object.map_at("parameters"), &path));
    if object.map_at("parameters").is_empty() {
        errors.push(FieldError::required(&path, "must contain at least one key/value pair"));
    }
    errors
}

fn validate_update(new: &Value, old: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    for name in ["driverName", "parameters"] {
        if new.at(name) != old.at(name) {
            let detail = format!("updates to {name} are forbidden.");
            errors.push(FieldError::forbidden(&Path::new(name), detail));
        }
    }
    errors.extend(validate(new));
    errors
}

fn cells(row: &Row<'_>) -> Vec<Value> {
    let defaults = ["volumeattributesclass.alpha.kubernetes.io/is-default-class"];
    vec![class_name(row, &defaults), row.text("driverName"), row.age()]
}
