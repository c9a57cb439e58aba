//! Validation of `metav1.Condition` in a status.

use std::collections::BTreeSet;

use serde_json::Value;

use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::meta;
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

const MAX_REASON: usize = 1024;
const MAX_MESSAGE: usize = 32 * 1024;

/// Validates each condition, and that types are unique.
pub(crate) fn validate(conditions: &[Value], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen = BTreeSet::new();
    for (i, condition) in conditions.iter().enumerate() {
        let path = path.index(i);
        let name = condition.str_at("type");
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(&path.child("type"), name));
        }
        errors.extend(one(condition, &path));
    }
    errors
}

fn one(condition: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let name = condition.str_at("type");
    errors.extend(meta::invalid(&path.child("type"), name, names::label_key(name)));
    let status = condition.str_at("status");
    let statuses = ["False", "True", "Unknown"];
    if !statuses.contains(&status) {
        errors.push(FieldError::not_supported(&path.child("status"), status, &statuses));
    }
    if let Some(generation @ ..0) = condition.int_at("observedGeneration") {
        let detail = "must be greater than or equal to zero";
        errors.push(FieldError::invalid(&path.child("observedGeneration"), generation, detail));
    }
    if !condition.has("lastTransitionTime") {
        errors.push(FieldError::required(&path.child("lastTransitionTime"), ""));
    }
    let at = path.child("reason");
    let reason = condition.str_at("reason");
    if reason.is_empty() {
        errors.push(FieldError::required(&at, ""));
    } else {
        errors.extend(meta::invalid(&at, reason, reason_messages(reason)));
        if reason.len() > MAX_REASON {
            errors.push(FieldError::too_long(&at, MAX_REASON));
        }
    }
    if condition.str_at("message").len() > MAX_MESSAGE {
        errors.push(FieldError::too_long(&path.child("message"), MAX_MESSAGE));
    }
    errors
}

fn reason_messages(reason: &str) -> Vec<String> {
    let begins = reason.starts_with(|c: char| c.is_ascii_alphabetic());
    let ends = reason.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    if begins && ends && reason.chars().all(|c| c.is_ascii_alphanumeric() || "_,:".contains(c)) {
        return Vec::new();
    }
    vec![names::regex_error(
        "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric \
         characters or '_,:', and must end with an alphanumeric character or '_'",
        "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?",
        &["my_name", "MY_NAME", "MyName", "ReasonA,ReasonB", "ReasonA:ReasonB"],
    )]
}
