//! Validation of roles and bindings. Privilege escalation is checked by the server.

use serde_json::Value;

use super::{one_of, required};
use crate::validation::label_selector;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::meta;
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

const GROUP: &str = "rbac.authorization.k8s.io";

pub(super) fn create(kind: &str, object: &Value) -> ErrorList {
    match kind {
        "Role" => rules(object, true),
        "ClusterRole" => {
            let mut errors = rules(object, false);
            errors.extend(aggregation(object));
            errors
        }
        "RoleBinding" => binding(object, &["Role", "ClusterRole"]),
        "ClusterRoleBinding" => binding(object, &["ClusterRole"]),
        _ => ErrorList::new(),
    }
}

pub(super) fn update(kind: &str, new: &Value, old: &Value) -> ErrorList {
    let mut errors = create(kind, new);
    errors.extend(create(kind, new));
    if kind.ends_with("Binding") && new.at("roleRef") != old.at("roleRef") {
        let role = new.at("roleRef");
        let printed = format!(
            "{{\"APIGroup\":{},\"Kind\":{},\"Name\":{}}}",
            kubewright_apimachinery::json::quote(role.str_at("apiGroup")),
            kubewright_apimachinery::json::quote(role.str_at("kind")),
            kubewright_apimachinery::json::quote(role.str_at("name"))
        );
        errors.push(FieldError::invalid_printed(&Path::new("roleRef"), printed, "cannot change roleRef"));
    }
    errors
}

fn rules(object: &Value, namespaced: bool) -> ErrorList {
    let path = Path::new("rules");
    let rules = object.list_at("rules").iter().enumerate();
    rules.flat_map(|(i, rule)| policy_rule(rule, namespaced, &path.index(i))).collect()
}

fn policy_rule(rule: &Value, namespaced: bool, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut needed = |name: &str, detail: &str| {
        if rule.list_at(name).is_empty() {
            errors.push(FieldError::required(&path.child(name), detail));
        }
    };
    needed("verbs", "verbs must contain at least one value");
    let urls = rule.list_at("nonResourceURLs");
    if urls.is_empty() {
        needed("apiGroups", "resource rules must supply at least one api group");
        needed("resources", "resource rules must supply at least one resource");
        return errors;
    }
    let path = path.child("nonResourceURLs");
    if namespaced {
        let detail = "namespaced rules cannot apply to non-resource URLs";
        errors.push(FieldError::invalid(&path, urls.to_vec(), detail));
    }
    if ["apiGroups", "resources", "resourceNames"].iter().any(|name| !rule.list_at(name).is_empty()) {
        let detail = "rules cannot apply to both regular resources and non-resource URLs";
        errors.push(FieldError::invalid(&path, urls.to_vec(), detail));
    }
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

fn binding(object: &Value, kinds: &[&str]) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = Path::new("roleRef");
    let role = object.at("roleRef");
    errors.extend(one_of(role.str_at("apiGroup"), &[GROUP], &path.child("apiGroup")));
    errors.extend(one_of(role.str_at("kind"), kinds, &path.child("kind")));
    let name = role.str_at("name");
    errors.extend(required(name, &path.child("name")));
    errors.extend(meta::invalid(&path.child("name"), name, names::path_segment_name(name)));
    let path = Path::new("subjects");
    let namespaced = kinds.len() > 1;
    for (i, one) in object.list_at("subjects").iter().enumerate() {
        errors.extend(subject(one, namespaced, &path.index(i)));
    }
    errors
}

fn subject(subject: &Value, namespaced: bool, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let name = subject.str_at("name");
    errors.extend(required(name, &path.child("name")));
    let group = subject.str_at("apiGroup");
    match subject.str_at("kind") {
        "ServiceAccount" => {
            if !name.is_empty() {
                errors.extend(meta::invalid(&path.child("name"), name, names::dns1123_subdomain(name)));
            }
            errors.extend(one_of(group, &[""], &path.child("apiGroup")));
            if !namespaced {
                errors.extend(required(subject.str_at("namespace"), &path.child("namespace")));
            }
        }
        "User" | "Group" => errors.extend(one_of(group, &[GROUP], &path.child("apiGroup"))),
        kind => errors.extend(one_of(kind, &["ServiceAccount", "User", "Group"], &path.child("kind"))),
    }
    errors
}
