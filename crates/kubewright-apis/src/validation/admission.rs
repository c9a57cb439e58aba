//! Validation of webhook configurations and admission policies, including their CEL expressions.

mod policies;
mod rules;
mod webhooks;

use std::collections::HashSet;

use serde_json::Value;

use super::required;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::meta;
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;
use kubewright_cel as cel;

const FAILURE_POLICIES: [&str; 2] = ["Fail", "Ignore"];
const MATCH_POLICIES: [&str; 2] = ["Equivalent", "Exact"];
const REINVOCATION_POLICIES: [&str; 2] = ["IfNeeded", "Never"];
const MAX_MATCH_CONDITIONS: usize = 64;

pub(super) fn create(kind: &str, object: &Value) -> ErrorList {
    match kind {
        "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => {
            webhooks::configuration(object, None)
        }
        "ValidatingAdmissionPolicy" => policies::validating(object),
        "MutatingAdmissionPolicy" => policies::mutating(object),
        "ValidatingAdmissionPolicyBinding" => policies::validating_binding(object),
        "MutatingAdmissionPolicyBinding" => policies::mutating_binding(object),
        _ => ErrorList::new(),
    }
}

/// Validates an object that replaces `old`. Unchanged invalid values are accepted.
pub(super) fn update(kind: &str, new: &Value, old: &Value) -> ErrorList {
    match kind {
        "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => {
            webhooks::configuration(new, Some(old))
        }
        _ => create(kind, new),
    }
}

/// Validates match conditions. `has_params` declares the variable `params`.
fn match_conditions(conditions: &[Value], has_params: bool, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if conditions.len() > MAX_MATCH_CONDITIONS {
        errors.push(FieldError::too_many(path, conditions.len(), MAX_MATCH_CONDITIONS));
    }
    let mut seen = HashSet::new();
    for (i, condition) in conditions.iter().enumerate() {
        let path = path.index(i);
        let expression = condition.str_at("expression").trim();
        if expression.is_empty() {
            errors.push(FieldError::required(&path.child("expression"), ""));
        } else {
            errors.extend(compiled(expression, has_params, &path.child("expression")));
        }
        let name = condition.str_at("name");
        let path = path.child("name");
        if name.is_empty() {
            errors.push(FieldError::required(&path, ""));
            continue;
        }
        errors.extend(meta::invalid(&path, name, names::label_key(name)));
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(&path, name));
        }
    }
    errors
}

/// The compile error of a match condition, if any.
fn compiled(expression: &str, has_params: bool, path: &Path) -> Option<FieldError> {
    let env = crate::admission::environment(has_params);
    let error = cel::Program::compile(&env, expression, Some(&cel::Type::Bool)).err()?;
    Some(FieldError::invalid(path, expression, error.to_string()))
}
