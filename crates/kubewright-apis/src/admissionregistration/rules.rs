//! Rules of webhooks and policies: defaults and validation.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::validation::{one_of, required, strings};
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::meta;
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
const SCOPES: [&str; 3] = ["*", "Cluster", "Namespaced"];

/// A rule matches all scopes by default.
pub(super) fn default_scope(rule: &mut Value) {
    rule.default_at("scope", "*");
}

/// Validates a rule of a policy, which may have resource names.
pub(super) fn named_rule(rule: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen = BTreeSet::new();
    for (i, name) in strings(rule, "resourceNames").into_iter().enumerate() {
        let path = path.child("resourceNames").index(i);
        errors.extend(meta::invalid(&path, name, names::path_segment_name(name)));
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(&path, name));
        }
    }
    errors.extend(self::rule(rule, path));
    errors
}

pub(super) fn rule(rule: &Value, path: &Path) -> ErrorList {
    let mut errors = list(rule, "operations", "operations", path);
    for (i, operation) in strings(rule, "operations").into_iter().enumerate() {
        errors.extend(one_of(operation, &OPERATIONS, &path.child("operations").index(i)));
    }
    errors.extend(list(rule, "apiGroups", "API groups", path));
    errors.extend(list(rule, "apiVersions", "API versions", path));
    for (i, version) in strings(rule, "apiVersions").into_iter().enumerate() {
        errors.extend(required(version, &path.child("apiVersions").index(i)));
    }
    errors.extend(resources(rule, &path.child("resources")));
    if let Some(scope) = rule.at("scope").as_str() {
        errors.extend(one_of(scope, &SCOPES, &path.child("scope")));
    }
    errors
}

/// Validates that a list is not empty and contains nothing next to `*`.
fn list(rule: &Value, name: &str, what: &str, path: &Path) -> ErrorList {
    let path = path.child(name);
    let values = strings(rule, name);
    if values.is_empty() {
        return vec![FieldError::required(&path, "")];
    }
    if values.len() > 1 && values.contains(&"*") {
        let detail = format!("if '*' is present, must not specify other {what}");
        return vec![FieldError::invalid(&path, rule.at(name).clone(), detail)];
    }
    ErrorList::new()
}

fn resources(rule: &Value, path: &Path) -> ErrorList {
    let resources = strings(rule, "resources");
    if resources.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let mut errors = ErrorList::new();
    let (mut whole, mut everywhere) = (BTreeSet::new(), BTreeSet::new());
    let mut last_plain = false;
    for (i, resource) in resources.iter().enumerate() {
        if resource.is_empty() {
            errors.push(FieldError::required(&path.index(i), ""));
            continue;
        }
        let Some((name, subresource)) = resource.split_once('/') else {
            // Upstream only considers the last one.
            last_plain = *resource != "*";
            continue;
        };
        let mut covered = |by: String| {
            let detail = format!("if '{by}' is present, must not specify {resource}");
            errors.push(FieldError::invalid(&path.index(i), *resource, detail));
        };
        if whole.contains(name) {
            covered(format!("{name}/*"));
        }
        if everywhere.contains(subresource) {
            covered(format!("*/{subresource}"));
        }
        if subresource == "*" {
            whole.insert(name);
        }
        if name == "*" {
            everywhere.insert(subresource);
        }
    }
    let mut shown =
        |detail: &str| errors.push(FieldError::invalid(path, rule.at("resources").clone(), detail));
    if resources.len() > 1 && resources.contains(&"*/*") {
        shown("if '*/*' is present, must not specify other resources");
    }
    if resources.contains(&"*") && last_plain {
        shown("if '*' is present, must not specify other resources without subresources");
    }
    errors
}
