//! ClusterRole.

use serde_json::Value;

use super::role::rules;
use crate::kinds::KindRules;
use crate::validation::label_selector;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::object::Fields as _;

pub(crate) const RULES: KindRules = KindRules {
    kind: "ClusterRole",
    validate,
    validate_update: |new, _| {
        let mut errors = validate(new);
        errors.extend(validate(new));
        errors
    },
    ..super::GROUP
};

fn validate(object: &Value) -> ErrorList {
    let mut errors = rules(object, false);
    errors.extend(aggregation(object));
    errors
}

fn aggregation(object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    if !object.has("aggregationRule") {
        return errors;
    }
    let path = Path::new("aggregationRule").child("clusterRoleSelectors");
    let selectors = object.list_at("aggregationRule.clusterRoleSelectors");
    if selectors.is_empty() {
        let detail = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        errors.push(FieldError::required(&path, detail));
    }
    for (i, selector) in selectors.iter().enumerate() {
        errors.extend(label_selector::validate(selector, &path.index(i)));
    }
    errors
}
