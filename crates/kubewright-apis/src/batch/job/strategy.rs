//! The generated selector of a Job, and warnings about its spec.

use serde_json::{Map, Value};

use crate::core::pod::strategy::pod_template_warnings;
use kubewright_apimachinery::field::Path;
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

/// Adds labels with the Job's name and UID to the pod template, and selects them, unless `manualSelector` is
/// set. Existing labels are kept; validation checks them.
pub(super) fn generate_selector(job: &mut Value) {
    if job.bool_at("spec.manualSelector") {
        return;
    }
    let name = job.at("metadata.name").clone();
    let uid = job.at("metadata.uid").clone();
    let add = |labels: &mut Map<String, Value>, key: &str, value: &Value| {
        labels.entry(key).or_insert_with(|| value.clone());
    };
    // If defaulting copied the labels of the template, upstream has a single map for both.
    let shared = job.at("metadata.labels") == job.at("spec.template.metadata.labels");
    let labels = job.object_mut("spec.template.metadata.labels");
    add(labels, "job-name", &name);
    add(labels, "batch.kubernetes.io/job-name", &name);
    add(labels, "controller-uid", &uid);
    add(labels, "batch.kubernetes.io/controller-uid", &uid);
    add(job.object_mut("spec.selector.matchLabels"), "batch.kubernetes.io/controller-uid", &uid);
    // Upstream copies the labels when it reads the stored Job and sets its defaults again. A name that is too
    // long for a label is rejected before that, with an error about the template only.
    let none = job.map_at("metadata.labels").is_empty();
    let copied = if none { names::label_value(job.str_at("metadata.name")).is_empty() } else { shared };
    if copied {
        let labels = job.at("spec.template.metadata.labels").clone();
        job.set_at("metadata.labels", labels);
    }
}

/// Warnings about the spec of a Job or of the template of a CronJob.
pub(crate) fn spec_warnings(spec: &Value, path: &Path) -> Vec<String> {
    let mut warnings = Vec::new();
    let completions = spec.int_at("completions").unwrap_or_default();
    let parallelism = spec.int_at("parallelism").unwrap_or_default();
    if spec.str_at("completionMode") == "Indexed" && completions > 100_000 && parallelism > 10_000 {
        warnings.push(format!(
            "{path}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than \
             10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
        ));
    }
    warnings.extend(pod_template_warnings(spec.at("template"), &path.child("template")));
    warnings
}
