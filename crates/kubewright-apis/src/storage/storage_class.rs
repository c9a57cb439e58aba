//! StorageClass.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::size;
use crate::kinds::KindRules;
use crate::registry::RegistryRules;
use crate::table::row::Row;
use crate::validation::{one_of, strings};
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::meta;
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

pub(crate) const RULES: KindRules = KindRules {
    kind: "StorageClass",
    defaults,
    validate,
    validate_update,
    cells,
    registry: RegistryRules { returns_deleted: true, ..RegistryRules::DEFAULT },
    ..super::GROUP
};

const MAX_PARAMETERS: usize = 512;

const MAX_PARAMETERS_SIZE: usize = 256 * 1024;

fn defaults(object: &mut Value) {
    object.default_at("reclaimPolicy", "Delete");
    object.default_at("volumeBindingMode", "Immediate");
}

fn validate(object: &Value) -> ErrorList {
    let mut errors = provisioner(object.str_at("provisioner"), &Path::new("provisioner"));
    errors.extend(parameters(object.map_at("parameters"), &Path::new("parameters")));
    let policy = object.str_at("reclaimPolicy");
    if !policy.is_empty() {
        errors.extend(one_of(policy, &["Delete", "Retain"], &Path::new("reclaimPolicy")));
    }
    let mode = Path::new("volumeBindingMode");
    match object.at("volumeBindingMode").as_str() {
        Some(value) => errors.extend(one_of(value, &["Immediate", "WaitForFirstConsumer"], &mode)),
        None => errors.push(FieldError::required(&mode, "")),
    }
    errors.extend(topologies(object.list_at("allowedTopologies"), &Path::new("allowedTopologies")));
    errors
}

fn validate_update(new: &Value, old: &Value) -> ErrorList {
    let mut errors = validate(new);
    for name in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
        errors.extend(meta::immutable(new.at(name), old.at(name), &Path::new(name)));
    }
    errors
}

/// Validates the name of a provisioner, or of the driver of a VolumeAttributesClass.
pub(super) fn provisioner(name: &str, path: &Path) -> ErrorList {
    if name.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let lower = name.to_lowercase();
    meta::invalid(path, &lower, names::label_key(&lower)).collect()
}

pub(super) fn parameters(parameters: &Map<String, Value>, path: &Path) -> ErrorList {
    if parameters.len() > MAX_PARAMETERS {
        return vec![FieldError::too_long(path, MAX_PARAMETERS)];
    }
    let mut errors = ErrorList::new();
    if parameters.contains_key("") {
        errors.push(FieldError::invalid(path, "", "field can not be empty."));
    }
    if size(parameters) > MAX_PARAMETERS_SIZE {
        errors.push(FieldError::too_long(path, MAX_PARAMETERS_SIZE));
    }
    errors
}

fn topologies(terms: &[Value], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen = BTreeSet::new();
    for (i, term) in terms.iter().enumerate() {
        let path = path.index(i).child("matchLabelExpressions");
        let requirements = term.list_at("matchLabelExpressions");
        let mut keys = BTreeSet::new();
        let mut meaning = BTreeSet::new();
        for (j, requirement) in requirements.iter().enumerate() {
            let path = path.index(j);
            let values = strings(requirement, "values");
            if values.is_empty() {
                errors.push(FieldError::required(&path.child("values"), ""));
            }
            let mut unique = BTreeSet::new();
            for (k, value) in values.into_iter().enumerate() {
                if !unique.insert(value) {
                    errors.push(FieldError::duplicate(&path.child("values").index(k), value));
                }
            }
            let key = requirement.str_at("key");
            errors.extend(meta::invalid(&path.child("key"), key, names::label_key(key)));
            if !keys.insert(key) {
                errors.push(FieldError::duplicate(&path.child("key"), key));
            }
            meaning.insert((key, unique));
        }
        if !seen.insert(meaning) {
            errors.push(FieldError::duplicate(&path, ""));
        }
    }
    errors
}

fn cells(row: &Row<'_>) -> Vec<Value> {
    let defaults =
        ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
    vec![
        class_name(row, &defaults),
        row.text("provisioner"),
        row.optional("reclaimPolicy", "Delete"),
        row.optional("volumeBindingMode", "Immediate"),
        row.flag("allowVolumeExpansion"),
        row.age(),
    ]
}

/// The name, with `(default)` if one of the annotations is set.
pub(super) fn class_name(row: &Row<'_>, defaults: &[&str]) -> Value {
    let name = row.str("metadata.name");
    if defaults.iter().any(|key| row.annotation(key) == Some("true")) {
        format!("{name} (default)").into()
    } else {
        name.into()
    }
}
