//! PodTemplate.

use serde_json::Value;

use super::pod::defaults::{object_at, pod_template as default_template};
use super::pod::strategy::{count, drop_disabled, pod_template_warnings};
use super::pod::validation::pod_template;
use crate::kinds::KindRules;
use crate::registry::RegistryRules;
use crate::strategy::start_generation;
use crate::table::row::Row;
use kubewright_apimachinery::field::{ErrorList, Path};
use kubewright_apimachinery::meta::Check;
use kubewright_apimachinery::object::Fields as _;

pub(crate) const RULES: KindRules = KindRules {
    kind: "PodTemplate",
    defaults: |object| {
        if let Some(template) = object_at(object, "template") {
            default_template(template);
        }
    },
    prepare_create: |object| {
        start_generation(object);
        drop_disabled(object.at_mut("template.spec"));
    },
    prepare_update: |new, old| {
        drop_disabled(new.at_mut("template.spec"));
        count(new, old, "template");
    },
    warnings,
    update_checks: &[Check::Update],
    validate,
    validate_update: |new, _| validate(new),
    cells,
    registry: RegistryRules { returns_deleted: true, ..RegistryRules::DEFAULT },
    ..super::GROUP
};

fn warnings(new: &Value, old: Option<&Value>) -> Vec<String> {
    let is_new = old.is_none_or(|old| old.at("metadata.generation") != new.at("metadata.generation"));
    if is_new { pod_template_warnings(new.at("template"), &Path::new("template")) } else { Vec::new() }
}

fn validate(object: &Value) -> ErrorList {
    pod_template(object.at("template"), &Path::new("template"))
}

fn cells(row: &Row<'_>) -> Vec<Value> {
    let [names, images] = row.containers("template.spec");
    vec![row.name(), names, images, row.labels("template.metadata.labels")]
}

#[cfg(test)]
mod tests;
