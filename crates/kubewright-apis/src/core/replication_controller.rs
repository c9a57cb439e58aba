//! ReplicationController.

use serde_json::Value;

use super::pod::defaults::default_template;
use super::pod::strategy::pod_template_warnings;
use super::pod::validation::pod_template;
use crate::apps::replica_set;
use crate::kinds::KindRules;
use crate::quota::Quota;
use crate::registry::{GarbageCollection, RegistryRules};
use crate::selectable::{NAME, NAMESPACE, Read, Refusal, Selectable};
use crate::strategy::{keep_status_and_count, reset_status_and_generation, workload};
use crate::table::WORKLOAD_PATHS;
use crate::table::row::Row;
use crate::validation::not_negative;
use crate::validation::workload::{not_matched, runs_always};
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::selector::LabelSelector;

pub(crate) const RULES: KindRules = KindRules {
    kind: "ReplicationController",
    defaults,
    prepare_create: reset_status_and_generation,
    prepare_update: keep_status_and_count,
    warnings: |new, old| {
        // Upstream omits `spec` from this path.
        workload::warnings(new, old, || {
            pod_template_warnings(new.at("spec.template"), &Path::new("template"))
        })
    },
    validate: create,
    validate_update: |new, _| update(new),
    validate_subresource: |subresource, new, _| match subresource {
        "status" => replica_set::status(new),
        _ => ErrorList::new(),
    },
    selectable: Some(&Selectable {
        fields: &[
            (NAME, Read::Text(NAME)),
            (NAMESPACE, Read::Text(NAMESPACE)),
            ("status.replicas", Read::Number("status.replicas")),
        ],
        refusal: Refusal::Plain,
    }),
    cells,
    cell_paths: Some(WORKLOAD_PATHS),
    quota: Some(&Quota::counted("replicationcontrollers")),
    registry: RegistryRules {
        garbage_collection: GarbageCollection::Orphan,
        etcd_name: Some("controllers"),
        ..RegistryRules::DEFAULT
    },
    ..super::GROUP
};

fn defaults(object: &mut Value) {
    default_template(object, "spec.template");
    let labels = object.at("spec.template.metadata.labels").clone();
    if labels.is_object() {
        if object.map_at("spec.selector").is_empty() {
            object.set_at("spec.selector", labels.clone());
        }
        if object.map_at("metadata.labels").is_empty() {
            object.set_at("metadata.labels", labels);
        }
    }
    object.default_at("spec.replicas", 1);
}

fn create(object: &Value) -> ErrorList {
    let path = Path::new("spec");
    let spec = object.at("spec");
    let mut errors = ErrorList::new();
    errors.extend(not_negative(spec, "minReadySeconds", &path));
    let labels = spec.map_at("selector");
    if labels.is_empty() {
        errors.push(FieldError::required(&path.child("selector"), ""));
    }
    errors.extend(not_negative(spec, "replicas", &path));
    let template = spec.at("template");
    let at = path.child("template");
    if template.is_null() {
        errors.push(FieldError::required(&at, ""));
        return errors;
    }
    let labels = labels.iter().map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()));
    errors.extend(not_matched(&LabelSelector::from_labels(labels), template, &at));
    errors.extend(pod_template(template, &at));
    errors.extend(runs_always(template, "ReplicationController", &at));
    errors
}

fn update(new: &Value) -> ErrorList {
    // Upstream runs both the create and the update validation, so errors occur twice.
    let mut errors = create(new);
    errors.extend(errors.clone());
    errors
}

fn cells(row: &Row<'_>) -> Vec<Value> {
    replica_set::replicas(row, row.labels("spec.selector"))
}

#[cfg(test)]
mod tests;
