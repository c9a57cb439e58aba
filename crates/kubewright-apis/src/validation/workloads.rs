//! Validation of the kinds of apps, batch, autoscaling and policy, and of ReplicationController.

mod autoscaler;
mod conditions;
mod controller_revision;
mod cron_job;
mod daemon_set;
mod deployment;
mod disruption_budget;
mod indexes;
mod int_or_percent;
mod job;
mod job_policies;
mod job_status;
mod printed;
mod replica_set;
mod replication_controller;
mod stateful_set;
#[cfg(test)]
mod tests;

use serde_json::Value;

use kubewright_apimachinery::field::{ErrorKind, ErrorList, FieldError, Path};
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::selector::LabelSelector;

pub(super) fn create(gvk: Gvk<'_>, object: &Value) -> ErrorList {
    match gvk.kind {
        "Deployment" => deployment::create(object),
        "ReplicaSet" => replica_set::create(object),
        "StatefulSet" => stateful_set::create(object),
        "DaemonSet" => daemon_set::create(object),
        "ControllerRevision" => controller_revision::create(object),
        "Job" => job::create(object),
        "CronJob" => cron_job::create(object),
        "HorizontalPodAutoscaler" => autoscaler::create(object),
        "PodDisruptionBudget" => disruption_budget::validate(object),
        "ReplicationController" => replication_controller::create(object),
        "Scale" => scale(object),
        _ => ErrorList::new(),
    }
}

pub(super) fn update(gvk: Gvk<'_>, new: &Value, old: &Value) -> ErrorList {
    match gvk.kind {
        "Deployment" => deployment::update(new, old),
        "ReplicaSet" => replica_set::update(new, old),
        "StatefulSet" => stateful_set::update(new, old),
        "DaemonSet" => daemon_set::update(new, old),
        "ControllerRevision" => controller_revision::update(new, old),
        "Job" => job::update(new, old),
        "CronJob" => cron_job::update(new, old),
        "HorizontalPodAutoscaler" => autoscaler::update(new, old),
        "PodDisruptionBudget" => disruption_budget::validate(new),
        "ReplicationController" => replication_controller::update(new),
        "Scale" => scale(new),
        _ => ErrorList::new(),
    }
}

pub(super) fn update_subresource(gvk: Gvk<'_>, subresource: &str, new: &Value, old: &Value) -> ErrorList {
    if subresource != "status" {
        return ErrorList::new();
    }
    match gvk.kind {
        "Deployment" => deployment::status(new, old),
        "ReplicaSet" | "ReplicationController" => replica_set::status(new),
        "StatefulSet" => stateful_set::status(new, old),
        "DaemonSet" => daemon_set::status(new, old),
        "Job" => job_status::update(new, old),
        "HorizontalPodAutoscaler" => autoscaler::status(new),
        "PodDisruptionBudget" => disruption_budget::status(new),
        _ => ErrorList::new(),
    }
}

fn scale(object: &Value) -> ErrorList {
    nonnegative(object.at("spec"), "replicas", &Path::new("spec")).into_iter().collect()
}

const NOT_MATCHED: &str = "`selector` does not match template `labels`";

/// Returns an error if a number is negative.
fn nonnegative(object: &Value, name: &str, path: &Path) -> Option<FieldError> {
    let value = object.int_at(name)?;
    let detail = "must be greater than or equal to 0";
    (value < 0).then(|| FieldError::invalid(&path.child(name), value, detail))
}

/// Returns an error for each negative number, in this order.
fn nonnegative_all(object: &Value, names: &[&str], path: &Path) -> ErrorList {
    names.iter().filter_map(|name| nonnegative(object, name, path)).collect()
}

/// Returns an error for each replica count that is greater than `replicas`, or than the ready count. Absent
/// counts are zero.
fn not_more_than_all(status: &Value, names: &[&str], ready: &str, path: &Path) -> ErrorList {
    let count = |name: &str| status.int_at(name).unwrap_or_default();
    let more = |name: &str, detail: &str| FieldError::invalid(&path.child(name), count(name), detail);
    let mut errors: ErrorList = names
        .iter()
        .filter(|name| count(name) > count("replicas"))
        .map(|name| more(name, "cannot be greater than status.replicas"))
        .collect();
    if count("availableReplicas") > count("readyReplicas") {
        errors.push(more("availableReplicas", &format!("cannot be greater than {ready}")));
    }
    errors
}

/// Returns an error if the collision count decreased.
fn collisions_decreased(new: &Value, old: &Value) -> Option<FieldError> {
    let count = new.int_at("status.collisionCount");
    let before = old.int_at("status.collisionCount")?;
    count.is_none_or(|count| count < before).then(|| {
        let path = Path::new("status").child("collisionCount");
        FieldError::invalid(&path, count.unwrap_or_default(), "cannot be decremented")
    })
}

/// Returns an error if the selector does not match the labels of the template.
fn not_matched(selector: &LabelSelector, template: &Value, path: &Path) -> Option<FieldError> {
    let labels = template.at("metadata.labels");
    (!selector.matches(labels))
        .then(|| FieldError::invalid(&path.child("metadata").child("labels"), labels.clone(), NOT_MATCHED))
}

/// Validates that pods always restart and have no deadline. Applies to all workloads except Job.
fn runs_always(template: &Value, kind: &str, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let spec = path.child("spec");
    let restart_policy = template.str_at("spec.restartPolicy");
    if restart_policy != "Always" {
        errors.push(FieldError::not_supported(&spec.child("restartPolicy"), restart_policy, &["Always"]));
    }
    if template.has("spec.activeDeadlineSeconds") {
        let detail = format!("activeDeadlineSeconds in {kind} is not Supported");
        errors.push(FieldError::forbidden(&spec.child("activeDeadlineSeconds"), detail));
    }
    errors
}

/// [`FieldError::not_supported`] with a printed value.
fn not_supported_printed(path: &Path, value: String, supported: &[&str]) -> FieldError {
    FieldError { value: Some(value), ..FieldError::not_supported(path, Value::Null, supported) }
}

/// An invalid value that upstream does not print.
fn invalid_omitted(path: &Path, detail: &str) -> FieldError {
    FieldError { kind: ErrorKind::Invalid, value: None, ..FieldError::required(path, detail) }
}
