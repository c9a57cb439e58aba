//! Validation of ReplicationController.

use serde_json::Value;

use super::{nonnegative, not_matched, runs_always};
use crate::validation::pods;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::selector::LabelSelector;

pub(super) fn create(object: &Value) -> ErrorList {
    let path = Path::new("spec");
    let spec = object.at("spec");
    let mut errors = ErrorList::new();
    errors.extend(nonnegative(spec, "minReadySeconds", &path));
    let labels = spec.map_at("selector");
    if labels.is_empty() {
        errors.push(FieldError::required(&path.child("selector"), ""));
    }
    errors.extend(nonnegative(spec, "replicas", &path));
    let template = spec.at("template");
    let at = path.child("template");
    if template.is_null() {
        errors.push(FieldError::required(&at, ""));
        return errors;
    }
    let labels = labels.iter().map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()));
    errors.extend(not_matched(&LabelSelector::from_labels(labels), template, &at));
    errors.extend(pods::pod_template(template, &at));
    errors.extend(runs_always(template, "ReplicationController", &at));
    errors
}

pub(super) fn update(new: &Value) -> ErrorList {
    // Upstream runs both the create and the update validation, so errors occur twice.
    let mut errors = create(new);
    errors.extend(errors.clone());
    errors
}
