//! Rules of webhook configurations and admission policies.
//!
//! Expressions are compiled: one that does not compile is refused.

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

/// Checks an object of a kind of admission registration.
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

/// Checks an object that replaces `old`. What was wrong before may stay wrong.
pub(super) fn update(kind: &str, new: &Value, old: &Value) -> ErrorList {
    match kind {
        "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => {
            webhooks::configuration(new, Some(old))
        }
        _ => create(kind, new),
    }
}

/// `has_params` is whether the conditions may name the parameters of a policy.
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

/// The error of a match condition that does not compile.
fn compiled(expression: &str, has_params: bool, path: &Path) -> Option<FieldError> {
    let env = crate::admission::environment(has_params);
    let error = cel::Program::compile(&env, expression, Some(&cel::Type::Bool)).err()?;
    Some(FieldError::invalid(path, expression, error.to_string()))
}
