//! ReplicaSet.

mod validation;

use serde_json::Value;

use crate::core::pod::defaults::default_template;
use crate::core::pod::strategy::pod_template_warnings;
use crate::kinds::KindRules;
use crate::strategy::workload;
use crate::table::WORKLOAD_PATHS;
use crate::table::row::Row;
use kubewright_apimachinery::field::{ErrorList, Path};
use kubewright_apimachinery::object::Fields as _;

pub(super) use validation::selector_and_template;
pub(crate) use validation::status;

pub(crate) const RULES: KindRules = KindRules {
    kind: "ReplicaSet",
    defaults,
    warnings: |new, old| {
        workload::warnings(new, old, || {
            pod_template_warnings(new.at("spec.template"), &Path::new("spec").child("template"))
        })
    },
    validate: validation::create,
    validate_update: validation::update,
    validate_subresource: |subresource, new, _| match subresource {
        "status" => status(new),
        _ => ErrorList::new(),
    },
    cells,
    cell_paths: Some(WORKLOAD_PATHS),
    ..super::GROUP
};

fn defaults(object: &mut Value) {
    default_template(object, "spec.template");
    object.default_at("spec.replicas", 1);
}

fn cells(row: &Row<'_>) -> Vec<Value> {
    replicas(row, row.selector("spec.selector"))
}

/// The cells of a ReplicaSet or ReplicationController.
pub(crate) fn replicas(row: &Row<'_>, selector: Value) -> Vec<Value> {
    let [names, images] = row.containers("spec.template.spec");
    vec![
        row.name(),
        row.number("spec.replicas"),
        row.number("status.replicas"),
        row.number("status.readyReplicas"),
        row.age(),
        names,
        images,
        selector,
    ]
}
