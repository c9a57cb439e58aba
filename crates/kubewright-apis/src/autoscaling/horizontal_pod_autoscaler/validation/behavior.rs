//! Validation of the scaling behavior of HorizontalPodAutoscaler.

use serde_json::Value;

use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::object::Fields as _;

const MAX_WINDOW: i64 = 3600;
const MAX_PERIOD: i64 = 1800;

pub(super) fn validate(behavior: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for name in ["scaleUp", "scaleDown"] {
        if behavior.has(name) {
            errors.extend(rules(behavior.at(name), &path.child(name)));
        }
    }
    errors
}

fn rules(rules: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let at = path.child("stabilizationWindowSeconds");
    let window = rules.int_at("stabilizationWindowSeconds");
    if let Some(window @ ..0) = window {
        errors.push(FieldError::invalid(&at, window, "must be greater than or equal to zero"));
    }
    if let Some(window) = window.filter(|window| *window > MAX_WINDOW) {
        errors.push(FieldError::invalid(&at, window, format!("must be less than or equal to {MAX_WINDOW}")));
    }
    if let Some(select) = rules.at("selectPolicy").as_str() {
        let supported = ["Disabled", "Max", "Min"];
        if !supported.contains(&select) {
            errors.push(FieldError::not_supported(&path.child("selectPolicy"), select, &supported));
        }
    }
    let policies = rules.list_at("policies");
    let at = path.child("policies");
    if policies.is_empty() {
        errors.push(FieldError::required(&at, "must specify at least one Policy"));
    }
    for (i, one) in policies.iter().enumerate() {
        errors.extend(policy(one, &at.index(i)));
    }
    if let Some(tolerance) = rules.at("tolerance").as_str().filter(|tolerance| tolerance.starts_with('-')) {
        let detail = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(&path.child("tolerance"), tolerance, detail));
    }
    errors
}

fn policy(policy: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let kind = policy.str_at("type");
    let supported = ["Percent", "Pods"];
    if !supported.contains(&kind) {
        errors.push(FieldError::not_supported(&path.child("type"), kind, &supported));
    }
    for name in ["value", "periodSeconds"] {
        let value = policy.int_at(name).unwrap_or_default();
        if value <= 0 {
            errors.push(FieldError::invalid(&path.child(name), value, "must be greater than zero"));
        }
    }
    if let Some(period) = policy.int_at("periodSeconds").filter(|period| *period > MAX_PERIOD) {
        let detail = format!("must be less than or equal to {MAX_PERIOD}");
        errors.push(FieldError::invalid(&path.child("periodSeconds"), period, detail));
    }
    errors
}
