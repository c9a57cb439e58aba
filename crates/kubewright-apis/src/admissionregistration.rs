//! Kinds of admissionregistration.k8s.io. [`crate::admission`] has the CEL environment of their expressions.

pub(crate) mod mutating_admission_policy;
pub(crate) mod mutating_admission_policy_binding;
pub(crate) mod mutating_webhook_configuration;
mod policy;
mod rules;
pub(crate) mod validating_admission_policy;
pub(crate) mod validating_admission_policy_binding;
pub(crate) mod validating_webhook_configuration;
mod webhooks;

use std::collections::HashSet;

use serde_json::Value;

use crate::kinds::KindRules;
use crate::registry::RegistryRules;
use crate::reset_fields;
use crate::strategy::{count_change, keep_spec_and_metadata, start_generation};
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::meta::{self, Check};
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;
use kubewright_cel as cel;

/// Rules that most kinds of the group share.
const GROUP: KindRules = KindRules {
    group: "admissionregistration.k8s.io",
    prepare_create: start_generation,
    prepare_update: |new, old| count_change(new, old, "spec"),
    prepare_subresource: keep_spec_and_metadata,
    update_checks: &[Check::New],
    subresource_checks: |_| &[],
    reset_fields: reset_fields::metadata_and_spec,
    registry: RegistryRules::CONDITIONAL_UPDATE,
    ..KindRules::DEFAULT
};

const FAILURE_POLICIES: [&str; 2] = ["Fail", "Ignore"];

const MATCH_POLICIES: [&str; 2] = ["Equivalent", "Exact"];

const REINVOCATION_POLICIES: [&str; 2] = ["IfNeeded", "Never"];

const MAX_MATCH_CONDITIONS: usize = 64;

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
