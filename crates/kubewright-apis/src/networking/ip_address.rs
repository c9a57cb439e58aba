//! IPAddress.

use serde_json::Value;

use crate::kinds::KindRules;
use crate::table::row::{NONE, Row};
use kubewright_apimachinery::field::{ErrorList, FieldError, Path, printed};
use kubewright_apimachinery::meta::{Check, IMMUTABLE, NameRule, invalid};
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::status::Qualified;

pub(crate) const RULES: KindRules = KindRules {
    kind: "IPAddress",
    name: |_| NameRule::IpAddress,
    update_checks: &[Check::Update],
    validate,
    validate_update,
    cells,
    ..super::GROUP
};

fn validate(address: &Value) -> ErrorList {
    let path = Path::new("spec").child("parentRef");
    let parent = address.at("spec.parentRef");
    if parent.is_null() {
        return vec![FieldError::required(&path, "")];
    }
    let mut errors = ErrorList::new();
    let group = parent.str_at("group");
    if !group.is_empty() {
        errors.extend(invalid(&path.child("group"), group, names::dns1123_subdomain(group)));
    }
    for (field, required) in [("resource", true), ("name", true), ("namespace", false)] {
        let (value, path) = (parent.str_at(field), path.child(field));
        if !value.is_empty() {
            errors.extend(invalid(&path, value, names::path_segment_name(value)));
        } else if required {
            errors.push(FieldError::required(&path, ""));
        }
    }
    errors
}

fn validate_update(new: &Value, old: &Value) -> ErrorList {
    let mut errors = validate(new);
    let parent = new.at("spec.parentRef");
    if parent != old.at("spec.parentRef") {
        let path = Path::new("spec").child("parentRef");
        errors.push(FieldError::invalid_printed(&path, printed_parent(parent), IMMUTABLE));
    }
    errors
}

/// A parent reference as printed from upstream's internal type.
fn printed_parent(parent: &Value) -> String {
    if parent.is_null() {
        return "null".to_owned();
    }
    let member = |name: &str, field: &str| format!("\"{name}\":{}", printed(&parent.str_at(field).into()));
    let members =
        [("Group", "group"), ("Resource", "resource"), ("Namespace", "namespace"), ("Name", "name")];
    format!("{{{}}}", members.map(|(name, field)| member(name, field)).join(","))
}

/// Like upstream, has one cell more than there are columns.
fn cells(row: &Row<'_>) -> Vec<Value> {
    let parent = row.object.at("spec.parentRef");
    let shown = if parent.is_null() {
        NONE.to_owned()
    } else {
        let resource = Qualified { group: parent.str_at("group"), name: parent.str_at("resource") };
        let namespace = parent.str_at("namespace");
        let slash = if namespace.is_empty() { "" } else { "/" };
        format!("{}{slash}{namespace}/{}", resource.to_string().to_lowercase(), parent.str_at("name"))
    };
    vec![row.name(), shown.into(), row.age()]
}

#[cfg(test)]
mod tests;
