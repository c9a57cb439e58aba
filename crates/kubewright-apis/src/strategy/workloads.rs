//! Strategies of the kinds of apps, batch, autoscaling and policy, and of ReplicationController.
//!
//! All have a status and a generation, except that ControllerRevision has no status and
//! HorizontalPodAutoscaler no generation.

#[cfg(test)]
mod tests;
mod warnings;

use serde_json::{Map, Value, json};

pub(super) use self::warnings::warnings;

use crate::convert::{TEMPLATE_GENERATION, convert};
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::{Fields as _, semantically_equal};

pub(super) fn prepare_create(gvk: Gvk<'_>, object: &mut Value) {
    match gvk.kind {
        "HorizontalPodAutoscaler" => return as_v2(gvk, object, |hpa| hpa.set_at("status", json!({}))),
        "StatefulSet" => drop_max_unavailable(object),
        "DaemonSet" => set_template_generation(object, template_generation(object).max(1)),
        "Job" => generate_selector(object),
        _ if !counts_generations(gvk) => return,
        _ => {}
    }
    object.set_at("status", json!({}));
    object.set_at("metadata.generation", 1);
}

pub(super) fn prepare_update(gvk: Gvk<'_>, new: &mut Value, old: &Value) {
    match gvk.kind {
        "HorizontalPodAutoscaler" => {
            let old = convert(old.clone(), v2(gvk));
            return as_v2(gvk, new, |new| keep(new, &old, "status"));
        }
        "StatefulSet" if !old.has(MAX_UNAVAILABLE) => drop_max_unavailable(new),
        "DaemonSet" => {
            let same = semantically_equal(new.at("spec.template"), old.at("spec.template"));
            set_template_generation(new, template_generation(old).saturating_add(i64::from(!same)));
        }
        _ if !counts_generations(gvk) => return,
        _ => {}
    }
    keep(new, old, "status");
    let mut changed = !semantically_equal(new.at("spec"), old.at("spec"));
    if gvk.kind == "Deployment" {
        // The controller copies annotations to ReplicaSets, so a change of them increments the generation.
        changed |= new.map_at("metadata.annotations") != old.map_at("metadata.annotations");
    }
    let generation = old.int_at("metadata.generation").unwrap_or_default().saturating_add(i64::from(changed));
    new.set_at("metadata.generation", generation);
}

pub(super) fn prepare_subresource(gvk: Gvk<'_>, subresource: &str, new: &mut Value, old: &Value) {
    if subresource != "status" {
        return;
    }
    match gvk.kind {
        "HorizontalPodAutoscaler" => {
            let old = convert(old.clone(), v2(gvk));
            return as_v2(gvk, new, |new| keep(new, &old, "spec"));
        }
        "Deployment" => keep(new, old, "metadata.labels"),
        // The template generation is part of the spec but stored in an annotation.
        "DaemonSet" => set_template_generation(new, template_generation(old)),
        _ => {}
    }
    keep(new, old, "spec");
}

fn counts_generations(gvk: Gvk<'_>) -> bool {
    matches!(
        gvk.kind,
        "Deployment"
            | "ReplicaSet"
            | "StatefulSet"
            | "DaemonSet"
            | "Job"
            | "CronJob"
            | "PodDisruptionBudget"
            | "ReplicationController"
    )
}

const MAX_UNAVAILABLE: &str = "spec.updateStrategy.rollingUpdate.maxUnavailable";

/// Drops a field whose feature gate is off by default.
fn drop_max_unavailable(stateful_set: &mut Value) {
    stateful_set.remove_at(MAX_UNAVAILABLE);
}

/// Restores the value at `path` from the old object.
fn keep(new: &mut Value, old: &Value, path: &str) {
    let part = old.at(path);
    if part.is_null() {
        new.remove_at(path);
    } else {
        new.set_at(path, part.clone());
    }
}

fn template_generation(daemon_set: &Value) -> i64 {
    let annotation = daemon_set.map_at("metadata.annotations").get(TEMPLATE_GENERATION);
    annotation.and_then(Value::as_str).and_then(|count| count.parse().ok()).unwrap_or_default()
}

fn set_template_generation(daemon_set: &mut Value, count: i64) {
    let annotations = daemon_set.object_mut("metadata.annotations");
    annotations.insert(TEMPLATE_GENERATION.to_owned(), count.to_string().into());
}

/// Edits an object in v2 form, because v1 stores parts of spec and status in annotations.
fn as_v2(gvk: Gvk<'_>, object: &mut Value, edit: impl FnOnce(&mut Value)) {
    let mut latest = convert(object.take(), v2(gvk));
    edit(&mut latest);
    *object = convert(latest, gvk);
}

fn v2(gvk: Gvk<'_>) -> Gvk<'_> {
    Gvk { version: "v2", ..gvk }
}

/// Adds labels with the Job's name and UID to the pod template, and selects them, unless `manualSelector` is
/// set. Existing labels are kept; validation checks them.
fn generate_selector(job: &mut Value) {
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
