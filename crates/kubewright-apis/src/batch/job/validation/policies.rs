//! Validation of the pod failure policy, success policy and pod replacement policy of Jobs.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{indexes, is_indexed, printed};
use crate::validation::{invalid_omitted, not_negative};
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::meta;
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

const MAX_RULES: usize = 20;
const MAX_EXIT_CODES: usize = 255;
const MAX_PATTERNS: usize = 20;
const MAX_SUCCEEDED_INDEXES: usize = 64 * 1024;

pub(super) fn pod_failure(spec: &Value, path: &Path) -> ErrorList {
    let path = path.child("podFailurePolicy").child("rules");
    let rules = spec.list_at("podFailurePolicy.rules");
    let mut errors = too_many(rules.len(), MAX_RULES, &path);
    for (i, rule) in rules.iter().enumerate() {
        errors.extend(pod_failure_rule(spec, rule, &path.index(i)));
    }
    errors
}

pub(super) fn success(spec: &Value, path: &Path) -> ErrorList {
    let policy = spec.at("successPolicy");
    if policy.is_null() {
        return ErrorList::new();
    }
    let path = path.child("successPolicy");
    if !is_indexed(spec) {
        let printed = printed::success_policy(policy);
        return vec![FieldError::invalid_printed(&path, printed, "requires indexed completion mode")];
    }
    let path = path.child("rules");
    let rules = policy.list_at("rules");
    let mut errors = too_many(rules.len(), MAX_RULES, &path);
    if rules.is_empty() {
        let detail = "at least one rules must be specified when the successPolicy is specified";
        errors.push(FieldError::required(&path, detail));
    }
    for (i, rule) in rules.iter().enumerate() {
        errors.extend(success_rule(spec.int_at("completions").unwrap_or_default(), rule, &path.index(i)));
    }
    errors
}

pub(super) fn pod_replacement(spec: &Value, path: &Path) -> Option<FieldError> {
    let policy = spec.at("podReplacementPolicy").as_str()?;
    // With a pod failure policy, only failed pods are replaced.
    let supported =
        if spec.has("podFailurePolicy") { &["Failed"][..] } else { &["Failed", "TerminatingOrFailed"] };
    (!supported.contains(&policy))
        .then(|| FieldError::not_supported(&path.child("podReplacementPolicy"), policy, supported))
}

fn pod_failure_rule(spec: &Value, rule: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let at = path.child("action");
    let actions = ["Count", "FailIndex", "FailJob", "Ignore"];
    match rule.str_at("action") {
        "FailIndex" if !spec.has("backoffLimitPerIndex") => {
            errors.push(FieldError::invalid(&at, "FailIndex", "requires the backoffLimitPerIndex to be set"));
        }
        action => errors.extend(one_of(action, &actions, &at)),
    }
    let (exit_codes, conditions) = (rule.at("onExitCodes"), rule.list_at("onPodConditions"));
    if !exit_codes.is_null() {
        errors.extend(on_exit_codes(spec, exit_codes, &path.child("onExitCodes")));
    }
    errors.extend(on_pod_conditions(conditions, &path.child("onPodConditions")));
    match (exit_codes.is_null(), conditions.is_empty()) {
        (false, false) => {
            let detail = "specifying both OnExitCodes and OnPodConditions is not supported";
            errors.push(invalid_omitted(path, detail));
        }
        (true, true) => {
            let detail = "specifying one of OnExitCodes and OnPodConditions is required";
            errors.push(invalid_omitted(path, detail));
        }
        _ => {}
    }
    errors
}

fn on_exit_codes(spec: &Value, codes: &Value, path: &Path) -> ErrorList {
    let operator = codes.str_at("operator");
    let mut errors = ErrorList::new();
    errors.extend(one_of(operator, &["In", "NotIn"], &path.child("operator")));
    if let Some(name) = codes.at("containerName").as_str() {
        let containers = ["template.spec.containers", "template.spec.initContainers"];
        let mut containers = containers.iter().flat_map(|list| spec.list_at(list));
        if !containers.any(|container| container.str_at("name") == name) {
            let detail = "must be one of the container or initContainer names in the pod template";
            errors.push(FieldError::invalid(&path.child("containerName"), name, detail));
        }
    }
    let values = codes.list_at("values");
    let path = path.child("values");
    if values.is_empty() {
        errors.push(FieldError::invalid(&path, codes.at("values").clone(), "at least one value is required"));
    }
    errors.extend(too_many(values.len(), MAX_EXIT_CODES, &path));
    let values: Vec<i64> = values.iter().filter_map(Value::as_i64).collect();
    let mut seen = BTreeSet::new();
    for (i, value) in values.iter().enumerate() {
        if operator == "In" && *value == 0 {
            errors.push(FieldError::invalid(&path.index(i), 0, "must not be 0 for the In operator"));
        }
        if !seen.insert(*value) {
            errors.push(FieldError::duplicate(&path.index(i), *value));
        }
    }
    if !values.is_sorted() {
        errors.push(FieldError::invalid(&path, codes.at("values").clone(), "must be ordered"));
    }
    errors
}

fn on_pod_conditions(patterns: &[Value], path: &Path) -> ErrorList {
    let mut errors = too_many(patterns.len(), MAX_PATTERNS, path);
    for (i, pattern) in patterns.iter().enumerate() {
        let path = path.index(i);
        let name = pattern.str_at("type");
        errors.extend(meta::invalid(&path.child("type"), name, names::label_key(name)));
        errors.extend(one_of(pattern.str_at("status"), &["False", "True", "Unknown"], &path.child("status")));
    }
    errors
}

fn success_rule(completions: i64, rule: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let (succeeded, count) = (rule.at("succeededIndexes").as_str(), rule.int_at("succeededCount"));
    if succeeded.is_none() && count.is_none() {
        let detail = "at least one of succeededCount or succeededIndexes must be specified";
        errors.push(FieldError::required(path, detail));
    }
    let mut named = None;
    if let Some(text) = succeeded {
        let at = path.child("succeededIndexes");
        if text.len() > MAX_SUCCEEDED_INDEXES {
            errors.push(FieldError::too_long(&at, MAX_SUCCEEDED_INDEXES));
        }
        let total = indexes::count(text, completions).unwrap_or_else(|error| {
            errors.push(FieldError::invalid(&at, text, format!("error parsing succeededIndexes: {error}")));
            0
        });
        named = Some(total);
    }
    if let Some(count) = count {
        let at = path.child("succeededCount");
        errors.extend(not_negative(rule, "succeededCount", path));
        let mut at_most = |limit: i64, of: &str| {
            if count > limit {
                let detail = format!("must be less than or equal to {limit} (the number of {of})");
                errors.push(FieldError::invalid(&at, count, detail));
            }
        };
        at_most(completions, "specified completions");
        if let Some(total) = named {
            at_most(total, "indexes in the specified succeededIndexes field");
        }
    }
    errors
}

fn one_of(value: &str, supported: &[&str], path: &Path) -> Option<FieldError> {
    if value.is_empty() {
        let quoted: Vec<String> = supported.iter().map(|value| format!("\"{value}\"")).collect();
        return Some(FieldError::required(path, format!("valid values: [{}]", quoted.join(" "))));
    }
    (!supported.contains(&value)).then(|| FieldError::not_supported(path, value, supported))
}

fn too_many(count: usize, max: usize, path: &Path) -> ErrorList {
    if count > max { vec![FieldError::too_many(path, count, max)] } else { ErrorList::new() }
}
