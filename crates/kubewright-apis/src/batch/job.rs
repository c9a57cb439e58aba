//! Job.

mod strategy;
mod table;
pub(super) mod validation;

use serde_json::Value;

use crate::core::pod::defaults::default_template;
use crate::defaults::default_text;
use crate::kinds::KindRules;
use crate::registry::{GarbageCollection, RegistryRules};
use crate::selectable::{NAME, NAMESPACE, Read, Refusal, Selectable};
use crate::strategy::{reset_status_and_generation, workload};
use kubewright_apimachinery::field::{ErrorList, Path};
use kubewright_apimachinery::object::Fields as _;

pub(super) use strategy::spec_warnings;

pub(crate) const RULES: KindRules = KindRules {
    kind: "Job",
    defaults,
    prepare_create: |object| {
        strategy::generate_selector(object);
        reset_status_and_generation(object);
    },
    warnings: |new, old| workload::warnings(new, old, || spec_warnings(new.at("spec"), &Path::new("spec"))),
    validate: validation::create,
    validate_update: validation::update,
    validate_subresource: |subresource, new, old| match subresource {
        "status" => validation::status::update(new, old),
        _ => ErrorList::new(),
    },
    selectable: Some(&Selectable {
        fields: &[
            (NAME, Read::Text(NAME)),
            (NAMESPACE, Read::Text(NAMESPACE)),
            ("status.successful", Read::Number("status.succeeded")),
        ],
        refusal: Refusal::Job,
    }),
    cells: table::cells,
    cell_paths: Some(table::CELL_PATHS),
    registry: RegistryRules {
        garbage_collection: GarbageCollection::Orphan,
        deletion_warning: Some(DELETION_WARNING),
        ..RegistryRules::DEFAULT
    },
    ..super::GROUP
};

const DELETION_WARNING: &str = "child pods are preserved by default when jobs are deleted; set \
                                propagationPolicy=Background to remove them or set propagationPolicy=Orphan to \
                                suppress this warning";

/// The backoff limit of a Job with `backoffLimitPerIndex`.
const NO_BACKOFF_LIMIT: i32 = i32::MAX;

fn defaults(object: &mut Value) {
    default_template(object, "spec.template");
    // Without both the Job runs once. With only parallelism it is a work queue and has no completions.
    if !object.has("spec.completions") && !object.has("spec.parallelism") {
        object.set_at("spec.completions", 1);
    }
    object.default_at("spec.parallelism", 1);
    let by_index = object.has("spec.backoffLimitPerIndex");
    object.default_at("spec.backoffLimit", if by_index { NO_BACKOFF_LIMIT } else { 6 });
    let labels = object.at("spec.template.metadata.labels");
    if labels.is_object() && object.map_at("metadata.labels").is_empty() {
        let labels = labels.clone();
        object.set_at("metadata.labels", labels);
    }
    object.default_at("spec.completionMode", "NonIndexed");
    object.default_at("spec.suspend", false);
    let replace = if object.has("spec.podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
    object.default_at("spec.podReplacementPolicy", replace);
    object.default_at("spec.manualSelector", false);
    pod_failure_policy(object, "spec.podFailurePolicy");
}

/// Sets the defaults of the pod failure policy at `path`, also in the template of a CronJob.
pub(super) fn pod_failure_policy(object: &mut Value, path: &str) {
    let Some(policy) = object.at_mut(path) else { return };
    for rule in policy.list_mut("rules").into_iter().flatten() {
        for pattern in rule.list_mut("onPodConditions").into_iter().flatten() {
            default_text(pattern, "status", "True");
        }
    }
}

#[cfg(test)]
mod tests;
