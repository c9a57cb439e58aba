//! Validation of webhook configurations.

use std::collections::HashSet;

use serde_json::Value;

use crate::admissionregistration::{
    FAILURE_POLICIES, MATCH_POLICIES, REINVOCATION_POLICIES, match_conditions, rules,
};
use crate::validation::{label_selector, one_of, strings};
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::meta;
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::webhook_client::client_config;

const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];
const NO_SIDE_EFFECTS: [&str; 2] = ["None", "NoneOnDryRun"];
const SIDE_EFFECTS: [&str; 4] = ["None", "NoneOnDryRun", "Some", "Unknown"];

/// Validates a configuration. Problems that `old` has too are accepted.
pub(super) fn configuration(object: &Value, old: Option<&Value>) -> ErrorList {
    let hooks = object.list_at("webhooks");
    let old_hooks = old.map(|old| old.list_at("webhooks"));
    let all_old = |good: &dyn Fn(&Value) -> bool| old_hooks.is_none_or(|hooks| hooks.iter().all(good));
    let demands = Demands {
        no_side_effects: all_old(&|hook| NO_SIDE_EFFECTS.contains(&hook.str_at("sideEffects"))),
        known_version: all_old(&|hook| {
            knows_version(hook) || hook.list_at("admissionReviewVersions").is_empty()
        }),
        match_conditions: old_hooks.is_none_or(|old| {
            let conditions = |hooks: &[Value]| -> Vec<Value> {
                hooks.iter().map(|hook| hook.at("matchConditions").clone()).collect()
            };
            conditions(hooks) != conditions(old)
        }),
    };
    let unique = old_hooks.is_none_or(|hooks| {
        let mut seen = HashSet::new();
        hooks.iter().all(|hook| seen.insert(hook.str_at("name")))
    });
    let mut errors = ErrorList::new();
    let mut seen = HashSet::new();
    for (i, hook) in hooks.iter().enumerate() {
        let path = Path::new("webhooks").index(i);
        errors.extend(webhook(hook, &demands, &path));
        errors.extend(review_versions(hook, &demands, &path.child("admissionReviewVersions")));
        let name = hook.str_at("name");
        if !seen.insert(name) && unique && !name.is_empty() {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        }
    }
    errors
}

/// Requirements on webhooks. Those that the stored configuration violates are not enforced.
struct Demands {
    no_side_effects: bool,
    known_version: bool,
    match_conditions: bool,
}

fn webhook(hook: &Value, demands: &Demands, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let name = hook.str_at("name");
    if name.is_empty() {
        errors.push(FieldError::required(&path.child("name"), ""));
    } else {
        errors.extend(meta::invalid(&path.child("name"), name, names::fully_qualified_name(name)));
    }
    for (i, rule) in hook.list_at("rules").iter().enumerate() {
        errors.extend(rules::rule(rule, &path.child("rules").index(i)));
    }
    for (name, known) in [("failurePolicy", &FAILURE_POLICIES), ("matchPolicy", &MATCH_POLICIES)] {
        if let Some(policy) = hook.at(name).as_str() {
            errors.extend(one_of(policy, known, &path.child(name)));
        }
    }
    let effects: &[&str] = if demands.no_side_effects { &NO_SIDE_EFFECTS } else { &SIDE_EFFECTS };
    if let Some(class) = hook.at("sideEffects").as_str() {
        errors.extend(one_of(class, effects, &path.child("sideEffects")));
    } else {
        let detail = format!("must specify one of {}", effects.join(", "));
        errors.push(FieldError::required(&path.child("sideEffects"), detail));
    }
    if let Some(seconds) = hook.int_at("timeoutSeconds").filter(|seconds| !(1..=30).contains(seconds)) {
        let detail = "the timeout value must be between 1 and 30 seconds";
        errors.push(FieldError::invalid(&path.child("timeoutSeconds"), seconds, detail));
    }
    for name in ["namespaceSelector", "objectSelector"] {
        errors.extend(label_selector::validate(hook.at(name), &path.child(name)));
    }
    if let Some(policy) = hook.at("reinvocationPolicy").as_str() {
        errors.extend(one_of(policy, &REINVOCATION_POLICIES, &path.child("reinvocationPolicy")));
    }
    errors.extend(client_config(hook.at("clientConfig"), &path.child("clientConfig")));
    if demands.match_conditions {
        errors.extend(match_conditions(
            hook.list_at("matchConditions"),
            false,
            &path.child("matchConditions"),
        ));
    }
    errors
}

fn knows_version(hook: &Value) -> bool {
    strings(hook, "admissionReviewVersions").iter().any(|version| REVIEW_VERSIONS.contains(version))
}

fn review_versions(hook: &Value, demands: &Demands, path: &Path) -> ErrorList {
    let versions = strings(hook, "admissionReviewVersions");
    let known = REVIEW_VERSIONS.join(", ");
    if versions.is_empty() {
        return vec![FieldError::required(path, format!("must specify one of {known}"))];
    }
    let mut errors = ErrorList::new();
    let mut seen = HashSet::new();
    for (i, version) in versions.iter().enumerate() {
        let path = path.index(i);
        if !seen.insert(version) {
            errors.push(FieldError::invalid(&path, *version, "duplicate version"));
            continue;
        }
        errors.extend(meta::invalid(&path, version, names::dns1035_label(version)));
    }
    if demands.known_version && !knows_version(hook) {
        let detail = format!("must include at least one of {known}");
        errors.push(FieldError::invalid(path, hook.at("admissionReviewVersions").clone(), detail));
    }
    errors
}
