//! Deployment.

mod validation;

use serde_json::Value;

use super::stateful_set::ready;
use crate::core::pod::defaults::default_template;
use crate::core::pod::strategy::pod_template_warnings;
use crate::defaults::default_text;
use crate::kinds::KindRules;
use crate::reset_fields::ResetFields;
use crate::strategy::{count_generation, keep, workload};
use crate::table::WORKLOAD_PATHS;
use crate::table::row::Row;
use kubewright_apimachinery::field::{ErrorList, Path};
use kubewright_apimachinery::meta::Check;
use kubewright_apimachinery::object::{Fields as _, semantically_equal};
use kubewright_apimachinery::selector::LabelSelector;

pub(crate) const RULES: KindRules = KindRules {
    kind: "Deployment",
    defaults,
    prepare_update,
    prepare_subresource: |subresource, new, old| {
        if subresource == "status" {
            keep(new, old, "metadata.labels");
            keep(new, old, "spec");
        }
    },
    warnings: |new, old| {
        workload::warnings(new, old, || {
            pod_template_warnings(new.at("spec.template"), &Path::new("spec").child("template"))
        })
    },
    update_checks: &[Check::Update],
    validate: validation::create,
    validate_update: validation::update,
    validate_subresource: |subresource, new, old| match subresource {
        "status" => validation::status(new, old),
        _ => ErrorList::new(),
    },
    reset_fields: |subresource| {
        (subresource == "status").then_some(ResetFields::These(&[&["spec"], &["metadata", "labels"]]))
    },
    cells,
    cell_paths: Some(WORKLOAD_PATHS),
    ..super::GROUP
};

fn defaults(object: &mut Value) {
    default_template(object, "spec.template");
    object.default_at("spec.replicas", 1);
    default_text(object, "spec.strategy.type", "RollingUpdate");
    if object.str_at("spec.strategy.type") == "RollingUpdate" {
        object.default_at("spec.strategy.rollingUpdate.maxUnavailable", "25%");
        object.default_at("spec.strategy.rollingUpdate.maxSurge", "25%");
    }
    object.default_at("spec.revisionHistoryLimit", 10);
    object.default_at("spec.progressDeadlineSeconds", 600);
}

fn prepare_update(new: &mut Value, old: &Value) {
    keep(new, old, "status");
    let mut changed = !semantically_equal(new.at("spec"), old.at("spec"));
    // The controller copies annotations to ReplicaSets, so a change of them increments the generation.
    changed |= new.map_at("metadata.annotations") != old.map_at("metadata.annotations");
    count_generation(new, old, changed);
}

fn cells(row: &Row<'_>) -> Vec<Value> {
    let [names, images] = row.containers("spec.template.spec");
    // Unlike other workloads, a Deployment shows an empty selector as such.
    let selector = LabelSelector::from_object(row.object.at("spec.selector"));
    vec![
        row.name(),
        ready(row),
        row.number("status.updatedReplicas"),
        row.number("status.availableReplicas"),
        row.age(),
        names,
        images,
        selector.map_or_else(|_| "<invalid>".into(), |selector| selector.to_string().into()),
    ]
}

#[cfg(test)]
mod tests;
