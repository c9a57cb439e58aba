//! Validation of ReplicaSet, and rules that it shares with Deployment.

use serde_json::Value;

use crate::core::pod::validation as pods;
use crate::validation::workload::{not_matched, not_more_than_all, runs_always};
use crate::validation::{label_selector, not_negative, not_negative_all};
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::selector::LabelSelector;

pub(super) fn create(object: &Value) -> ErrorList {
    let path = Path::new("spec");
    let spec = object.at("spec");
    let mut errors = ErrorList::new();
    errors.extend(not_negative(spec, "replicas", &path));
    errors.extend(not_negative(spec, "minReadySeconds", &path));
    errors.extend(selector_and_template(spec, &path));
    errors
}

pub(super) fn update(new: &Value, old: &Value) -> ErrorList {
    let mut errors = create(new);
    let path = Path::new("spec").child("selector");
    errors.extend(label_selector::immutable(new.at("spec.selector"), old.at("spec.selector"), &path));
    errors
}

/// Validates the status of a ReplicaSet or ReplicationController.
pub(crate) fn status(object: &Value) -> ErrorList {
    let path = Path::new("status");
    let status = object.at("status");
    let counts =
        ["replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration"];
    let mut errors = not_negative_all(status, &counts, &path);
    let parts = ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"];
    errors.extend(not_more_than_all(status, &parts, "readyReplicas", &path));
    errors
}

/// Validates the selector and template of a ReplicaSet or Deployment, which have the same messages.
pub(crate) fn selector_and_template(spec: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let at = path.child("selector");
    let selector = spec.at("selector");
    if selector.is_null() {
        errors.push(FieldError::required(&at, ""));
    } else {
        errors.extend(label_selector::validate(selector, &at));
        if label_selector::is_empty(selector) {
            let detail = "empty selector is invalid for deployment";
            errors.push(FieldError::invalid_printed(&at, label_selector::printed(selector), detail));
        }
    }
    if let Ok(selector) = LabelSelector::from_object(selector) {
        errors.extend(template(spec.at("template"), &selector, &path.child("template")));
    } else {
        let printed = label_selector::printed(selector);
        errors.push(FieldError::invalid_printed(&at, printed, "invalid label selector"));
    }
    errors
}

fn template(template: &Value, selector: &LabelSelector, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    errors.extend(not_matched(selector, template, path));
    errors.extend(pods::pod_template(template, path));
    errors.extend(runs_always(template, "ReplicaSet", path));
    errors
}
