//! Role, and the policy rules that it shares with ClusterRole.

use serde_json::Value;

use crate::kinds::KindRules;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::object::Fields as _;

pub(crate) const RULES: KindRules = KindRules {
    kind: "Role",
    validate,
    validate_update: |new, _| {
        let mut errors = validate(new);
        errors.extend(validate(new));
        errors
    },
    ..super::GROUP
};

fn validate(object: &Value) -> ErrorList {
    rules(object, true)
}

pub(super) fn rules(object: &Value, namespaced: bool) -> ErrorList {
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
