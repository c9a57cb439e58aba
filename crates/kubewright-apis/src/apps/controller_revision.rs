//! ControllerRevision.

use serde_json::Value;

use crate::kinds::KindRules;
use crate::table::row::{NONE, Row};
use crate::validation::not_negative;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::gvk::split_api_version;
use kubewright_apimachinery::meta::{self, Check};
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::status::Qualified;

pub(crate) const RULES: KindRules = KindRules {
    kind: "ControllerRevision",
    prepare_create: |_| {},
    prepare_update: |_, _| {},
    update_checks: &[Check::Update, Check::New],
    validate: create,
    validate_update: update,
    cells,
    ..super::GROUP
};

fn create(object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    errors.extend(not_negative(object, "revision", &Path::root()));
    let data = object.at("data");
    if data.is_null() {
        errors.push(FieldError::required(&Path::new("data"), "data is mandatory"));
    } else if !data.is_object() {
        errors.push(FieldError::required(&Path::new("data"), "data must be a valid JSON object"));
    }
    errors
}

fn update(new: &Value, old: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    errors.extend(not_negative(new, "revision", &Path::root()));
    errors.extend(meta::immutable(new.at("data"), old.at("data"), &Path::new("data")));
    errors
}

fn cells(row: &Row<'_>) -> Vec<Value> {
    let owners = row.list("metadata.ownerReferences");
    let controller = owners.iter().find(|owner| owner.bool_at("controller")).map(|owner| {
        let (group, _) = split_api_version(owner.str_at("apiVersion"));
        let kind = Qualified { group, name: owner.str_at("kind") }.to_string().to_lowercase();
        format!("{kind}/{}", owner.str_at("name"))
    });
    vec![row.name(), controller.as_deref().unwrap_or(NONE).into(), row.number("revision"), row.age()]
}

#[cfg(test)]
mod tests;
