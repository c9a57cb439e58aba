//! Validation of PodDisruptionBudget.

use serde_json::Value;

use super::{conditions, int_or_percent, nonnegative_all, printed};
use crate::validation::label_selector;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::object::Fields as _;

/// Validates a budget on create and update. No field is immutable.
pub(super) fn validate(object: &Value) -> ErrorList {
    let path = Path::new("spec");
    let spec = object.at("spec");
    let mut errors = ErrorList::new();
    if spec.has("minAvailable") && spec.has("maxUnavailable") {
        let detail = "minAvailable and maxUnavailable cannot be both set";
        errors.push(FieldError::invalid_printed(&path, printed::disruption_budget_spec(spec), detail));
    }
    for name in ["minAvailable", "maxUnavailable"] {
        if spec.has(name) {
            errors.extend(int_or_percent::validate(spec.at(name), &path.child(name)));
            errors.extend(int_or_percent::at_most_all(spec.at(name), &path.child(name)));
        }
    }
    errors.extend(label_selector::validate(spec.at("selector"), &path.child("selector")));
    if spec.has("unhealthyPodEvictionPolicy") {
        let policy = spec.str_at("unhealthyPodEvictionPolicy");
        let supported = ["AlwaysAllow", "IfHealthyBudget"];
        if !supported.contains(&policy) {
            let at = path.child("unhealthyPodEvictionPolicy");
            errors.push(FieldError::not_supported(&at, policy, &supported));
        }
    }
    errors
}

pub(super) fn status(object: &Value) -> ErrorList {
    let path = Path::new("status");
    let status = object.at("status");
    let mut errors = conditions::validate(status.list_at("conditions"), &path.child("conditions"));
    let counts = ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"];
    errors.extend(nonnegative_all(status, &counts, &path));
    errors
}
