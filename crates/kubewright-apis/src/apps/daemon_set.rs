//! DaemonSet.

mod validation;

use serde_json::Value;

use crate::core::pod::defaults::default_template;
use crate::core::pod::strategy::pod_template_warnings;
use crate::defaults::default_text;
use crate::kinds::KindRules;
use crate::registry::RegistryRules;
use crate::strategy::{keep, keep_status_and_count, reset_status_and_generation, workload};
use crate::table::WORKLOAD_PATHS;
use crate::table::row::Row;
use kubewright_apimachinery::field::{ErrorList, Path};
use kubewright_apimachinery::object::{Fields as _, semantically_equal};

pub(crate) const RULES: KindRules = KindRules {
    kind: "DaemonSet",
    defaults,
    prepare_create: |object| {
        set_template_generation(object, template_generation(object).max(1));
        reset_status_and_generation(object);
    },
    prepare_update: |new, old| {
        let same = semantically_equal(new.at("spec.template"), old.at("spec.template"));
        set_template_generation(new, template_generation(old).saturating_add(i64::from(!same)));
        keep_status_and_count(new, old);
    },
    prepare_subresource: |subresource, new, old| {
        if subresource == "status" {
            // The template generation is part of the spec but stored in an annotation.
            set_template_generation(new, template_generation(old));
            keep(new, old, "spec");
        }
    },
    warnings: |new, old| {
        workload::changed_spec(new, old, || {
            pod_template_warnings(new.at("spec.template"), &Path::new("spec").child("template"))
        })
    },
    validate: validation::create,
    validate_update: validation::update,
    validate_subresource: |subresource, new, old| match subresource {
        "status" => validation::status(new, old),
        _ => ErrorList::new(),
    },
    cells,
    cell_paths: Some(WORKLOAD_PATHS),
    registry: RegistryRules {
        hidden_annotation: Some("deprecated.daemonset.template.generation"),
        ..RegistryRules::DEFAULT
    },
    ..super::GROUP
};

/// Annotation with the template generation. apps/v1 has no field for it.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

fn defaults(object: &mut Value) {
    default_template(object, "spec.template");
    default_text(object, "spec.updateStrategy.type", "RollingUpdate");
    if object.str_at("spec.updateStrategy.type") == "RollingUpdate" {
        object.default_at("spec.updateStrategy.rollingUpdate.maxUnavailable", 1);
        object.default_at("spec.updateStrategy.rollingUpdate.maxSurge", 0);
    }
    object.default_at("spec.revisionHistoryLimit", 10);
    let annotations = object.object_mut("metadata.annotations");
    annotations.entry(TEMPLATE_GENERATION).or_insert_with(|| "0".into());
}

fn template_generation(daemon_set: &Value) -> i64 {
    let annotation = daemon_set.map_at("metadata.annotations").get(TEMPLATE_GENERATION);
    annotation.and_then(Value::as_str).and_then(|count| count.parse().ok()).unwrap_or_default()
}

fn set_template_generation(daemon_set: &mut Value, count: i64) {
    let annotations = daemon_set.object_mut("metadata.annotations");
    annotations.insert(TEMPLATE_GENERATION.to_owned(), count.to_string().into());
}

fn cells(row: &Row<'_>) -> Vec<Value> {
    let [names, images] = row.containers("spec.template.spec");
    vec![
        row.name(),
        row.number("status.desiredNumberScheduled"),
        row.number("status.currentNumberScheduled"),
        row.number("status.numberReady"),
        row.number("status.updatedNumberScheduled"),
        row.number("status.numberAvailable"),
        row.labels("spec.template.spec.nodeSelector"),
        row.age(),
        names,
        images,
        row.selector("spec.selector"),
    ]
}

#[cfg(test)]
mod tests;
