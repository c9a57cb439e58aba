//! ValidatingAdmissionPolicyBinding.

use std::collections::HashSet;

use serde_json::Value;

use super::policy;
use crate::kinds::KindRules;
use crate::validation::{one_of, strings};
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::object::Fields as _;

pub(crate) const RULES: KindRules = KindRules {
    kind: "ValidatingAdmissionPolicyBinding",
    defaults: policy::binding_defaults,
    validate,
    validate_update: |new, _| validate(new),
    cells: policy::binding_cells,
    ..super::GROUP
};

fn validate(object: &Value) -> ErrorList {
    let mut errors = policy::binding(object);
    let path = Path::new("spec").child("validationActions");
    let actions = strings(object, "spec.validationActions");
    let mut seen = HashSet::new();
    for (i, action) in actions.iter().enumerate() {
        errors.extend(one_of(action, &["Audit", "Deny", "Warn"], &path.index(i)));
        if !seen.insert(action) {
            errors.push(FieldError::duplicate(&path.index(i), *action));
        }
    }
    if actions.contains(&"Deny") && actions.contains(&"Warn") {
        let detail = "must not contain both Deny and Warn (repeating the same validation failure information in the \
                      API response and headers serves no purpose)";
        errors.push(FieldError::invalid(&path, object.at("spec.validationActions").clone(), detail));
    }
    if actions.is_empty() {
        errors.push(FieldError::required(&path, "at least one validation action is required"));
    }
    errors
}
