//! Validation of ResourceQuota.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::validation::resource_name::{is_quota_resource, resource, resource_amount};
use crate::validation::strings;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::json;
use kubewright_apimachinery::meta;
use kubewright_apimachinery::object::Fields as _;

pub(super) fn resource_quota(object: &Value) -> ErrorList {
    let mut errors = quota_spec(object.at("spec"));
    errors.extend(quota_status(object));
    errors
}

pub(super) fn resource_quota_update(new: &Value, old: &Value) -> ErrorList {
    let mut errors = resource_quota(new);
    errors.extend(quota_spec(new.at("spec")));
    let scopes = |object| strings(object, "spec.scopes").into_iter().collect::<BTreeSet<_>>();
    if scopes(new) != scopes(old) {
        let path = Path::new("spec").child("scopes");
        errors.push(FieldError::invalid(&path, new.at("spec.scopes").clone(), meta::IMMUTABLE));
    }
    errors
}

pub(super) fn quota_status(object: &Value) -> ErrorList {
    let path = Path::new("status");
    let mut errors = quota_amounts(object.map_at("status.hard"), &path.child("hard"));
    errors.extend(quota_amounts(object.map_at("status.used"), &path.child("used")));
    errors
}

fn quota_spec(spec: &Value) -> ErrorList {
    let path = Path::new("spec");
    let mut errors = quota_amounts(spec.map_at("hard"), &path.child("hard"));
    errors.extend(quota_scopes(spec, &path.child("scopes")));
    errors.extend(scope_selector(spec, &path.child("scopeSelector").child("matchExpressions")));
    errors
}

fn quota_amounts(amounts: &Map<String, Value>, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (name, amount) in amounts {
        let path = path.key(name);
        errors.extend(resource(name, &path));
        if !name.contains('/') && !is_quota_resource(name) {
            errors.push(FieldError::invalid(&path, name.as_str(), "must be a standard resource for quota"));
        }
        errors.extend(resource_amount(name, amount, &path));
    }
    errors
}

fn quota_scopes(spec: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let scopes = strings(spec, "scopes");
    let shown = |detail: &str| FieldError::invalid(path, spec.at("scopes").clone(), detail);
    for scope in &scopes {
        if !is_scope(scope) {
            errors.push(shown("unsupported scope"));
        }
        for name in spec.map_at("hard").keys() {
            if is_quota_resource(name) && !is_scope_of(scope, name) {
                errors.push(shown("unsupported scope applied to resource"));
            }
        }
    }
    errors.extend(conflicts(&scopes).map(|()| shown("conflicting scopes")));
    errors
}

fn scope_selector(spec: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let requirements = spec.list_at("scopeSelector.matchExpressions");
    for requirement in requirements {
        let scope = requirement.str_at("scopeName");
        let operator = requirement.str_at("operator");
        let values = requirement.list_at("values");
        if !is_scope(scope) {
            errors.push(FieldError::invalid(&path.child("scopeName"), scope, "unsupported scope"));
        }
        for name in spec.map_at("hard").keys() {
            if is_quota_resource(name) && !is_scope_of(scope, name) {
                let shown = printed_selector(requirements);
                errors.push(FieldError::invalid_printed(
                    path,
                    shown,
                    "unsupported scope applied to resource",
                ));
            }
        }
        if !matches!(scope, "PriorityClass" | "VolumeAttributesClass")
            && is_scope(scope)
            && operator != "Exists"
        {
            let detail = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, \
                          ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, \
                          ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
            errors.push(FieldError::invalid(&path.child("operator"), operator, detail));
        }
        match (operator, values.is_empty()) {
            ("In" | "NotIn", true) => {
                let detail =
                    "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
                errors.push(FieldError::required(&path.child("values"), detail));
            }
            ("Exists" | "DoesNotExist", false) => {
                let detail =
                    "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
                errors.push(FieldError::invalid(&path.child("values"), values.to_vec(), detail));
            }
            ("In" | "NotIn" | "Exists" | "DoesNotExist", _) => {}
            _ => errors.push(FieldError::invalid(
                &path.child("operator"),
                operator,
                "not a valid selector operator",
            )),
        }
    }
    let scopes: Vec<&str> = requirements.iter().map(|requirement| requirement.str_at("scopeName")).collect();
    errors.extend(
        conflicts(&scopes)
            .map(|()| FieldError::invalid(path, spec.at("scopes").clone(), "conflicting scopes")),
    );
    errors
}

/// A scope selector with Go's field names.
fn printed_selector(requirements: &[Value]) -> String {
    let requirements: Vec<String> = requirements
        .iter()
        .map(|requirement| {
            format!(
                "{{\"ScopeName\":{},\"Operator\":{},\"Values\":{}}}",
                requirement.at("scopeName"),
                requirement.at("operator"),
                json::to_string(requirement.at("values"))
            )
        })
        .collect();
    format!("{{\"MatchExpressions\":[{}]}}", requirements.join(","))
}

/// One item per pair of mutually exclusive scopes.
fn conflicts(scopes: &[&str]) -> impl Iterator<Item = ()> {
    let pairs = [["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]];
    let found: Vec<()> =
        pairs.iter().filter(|pair| pair.iter().all(|scope| scopes.contains(scope))).map(|_| ()).collect();
    found.into_iter()
}

fn is_scope(scope: &str) -> bool {
    matches!(
        scope,
        "Terminating"
            | "NotTerminating"
            | "BestEffort"
            | "NotBestEffort"
            | "PriorityClass"
            | "CrossNamespacePodAffinity"
            | "VolumeAttributesClass"
    )
}

fn is_scope_of(scope: &str, resource: &str) -> bool {
    let of_pods = resource == "pods"
        || ["cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"]
            .contains(&resource);
    match scope {
        "Terminating"
        | "NotTerminating"
        | "NotBestEffort"
        | "PriorityClass"
        | "CrossNamespacePodAffinity" => of_pods,
        "BestEffort" => resource == "pods",
        "VolumeAttributesClass" => matches!(resource, "persistentvolumeclaims" | "requests.storage"),
        _ => true,
    }
}
