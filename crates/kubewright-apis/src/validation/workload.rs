//! Validation that workloads share: selectors, templates and replica counts.

use serde_json::Value;

use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::selector::LabelSelector;

pub(crate) const NOT_MATCHED: &str = "`selector` does not match template `labels`";

/// Returns an error for each replica count that is greater than `replicas`, or than the ready count. Absent
/// counts are zero.
pub(crate) fn not_more_than_all(status: &Value, names: &[&str], ready: &str, path: &Path) -> ErrorList {
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
pub(crate) fn collisions_decreased(new: &Value, old: &Value) -> Option<FieldError> {
    let count = new.int_at("status.collisionCount");
    let before = old.int_at("status.collisionCount")?;
    count.is_none_or(|count| count < before).then(|| {
        let path = Path::new("status").child("collisionCount");
        FieldError::invalid(&path, count.unwrap_or_default(), "cannot be decremented")
    })
}

/// Returns an error if the selector does not match the labels of the template.
pub(crate) fn not_matched(selector: &LabelSelector, template: &Value, path: &Path) -> Option<FieldError> {
    let labels = template.at("metadata.labels");
    (!selector.matches(labels))
        .then(|| FieldError::invalid(&path.child("metadata").child("labels"), labels.clone(), NOT_MATCHED))
}

/// Validates that pods always restart and have no deadline. Applies to all workloads except Job.
pub(crate) fn runs_always(template: &Value, kind: &str, path: &Path) -> ErrorList {
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
