//! Validation of FlowSchema. Does not check the fixed specs of mandatory objects.

use serde_json::Value;

use crate::flowcontrol::status;
use crate::validation::{one_of, strings};
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::meta;
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

const MAX_PRECEDENCE: i64 = 10_000;

const VERBS: [&str; 9] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];

pub(super) fn create(object: &Value) -> ErrorList {
    let mut errors = flow_schema(object.at("spec"), object.str_at("metadata.name"));
    errors.extend(status(object));
    errors
}

fn flow_schema(spec: &Value, name: &str) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = Path::new("spec");
    let precedence = spec.int_at("matchingPrecedence").unwrap_or_default();
    let mut at_precedence = |wrong: bool, detail: String| {
        if wrong {
            errors.push(FieldError::invalid(&path.child("matchingPrecedence"), precedence, detail));
        }
    };
    at_precedence(precedence <= 0, "must be a positive value".to_owned());
    at_precedence(precedence > MAX_PRECEDENCE, format!("must not be greater than {MAX_PRECEDENCE}"));
    at_precedence(
        precedence == 1 && name != "exempt",
        "only the schema named 'exempt' may have matchingPrecedence 1".to_owned(),
    );
    if spec.has("distinguisherMethod") {
        let method = spec.str_at("distinguisherMethod.type");
        let known = ["ByNamespace", "ByUser"];
        if !known.contains(&method) {
            let mut error =
                FieldError::not_supported(&path.child("distinguisherMethod").child("type"), method, &known);
            // Upstream prints the whole distinguisher method.
            error.value = Some(format!("{{\"Type\":{}}}", kubewright_apimachinery::json::quote(method)));
            errors.push(error);
        }
    }
    let level = path.child("priorityLevelConfiguration").child("name");
    match spec.str_at("priorityLevelConfiguration.name") {
        "" => errors.push(FieldError::required(&level, "must reference a priority level")),
        name => errors.extend(meta::invalid(&level, name, names::dns1123_subdomain(name))),
    }
    for (i, rule) in spec.list_at("rules").iter().enumerate() {
        errors.extend(policy_rules(rule, &path.child("rules").index(i)));
    }
    errors
}

fn policy_rules(rule: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if rule.list_at("subjects").is_empty() {
        errors
            .push(FieldError::required(&path.child("subjects"), "subjects must contain at least one value"));
    }
    for (i, one) in rule.list_at("subjects").iter().enumerate() {
        errors.extend(subject(one, &path.child("subjects").index(i)));
    }
    if rule.list_at("resourceRules").is_empty() && rule.list_at("nonResourceRules").is_empty() {
        let detail = "at least one of resourceRules and nonResourceRules has to be non-empty";
        errors.push(FieldError::required(path, detail));
    }
    for (i, rule) in rule.list_at("resourceRules").iter().enumerate() {
        errors.extend(resource_rule(rule, &path.child("resourceRules").index(i)));
    }
    for (i, rule) in rule.list_at("nonResourceRules").iter().enumerate() {
        errors.extend(url_rule(rule, &path.child("nonResourceRules").index(i)));
    }
    errors
}

const SUBJECTS: [(&str, &str); 3] =
    [("Group", "group"), ("ServiceAccount", "serviceAccount"), ("User", "user")];

fn subject(subject: &Value, path: &Path) -> ErrorList {
    let kind = subject.str_at("kind");
    let Some((_, own)) = SUBJECTS.iter().find(|(known, _)| *known == kind) else {
        return one_of(kind, &SUBJECTS.map(|(kind, _)| kind), &path.child("kind")).into_iter().collect();
    };
    let mut errors = ErrorList::new();
    let own_path = path.child(own);
    if subject.has(own) {
        let (name, namespace) = (subject.at(own).str_at("name"), subject.at(own).str_at("namespace"));
        if name.is_empty() {
            errors.push(FieldError::required(&own_path.child("name"), ""));
        } else if kind == "ServiceAccount" && name != "*" {
            errors.extend(meta::invalid(&own_path.child("name"), name, names::dns1123_subdomain(name)));
        }
        if kind == "ServiceAccount" {
            let path = own_path.child("namespace");
            match namespace {
                "" => errors.push(FieldError::required(&path, "must specify namespace for service account")),
                namespace => errors.extend(meta::invalid(&path, namespace, names::dns1123_label(namespace))),
            }
        }
    } else {
        let detail = format!("{own} is required when subject kind is '{kind}'");
        errors.push(FieldError::required(&own_path, detail));
    }
    // Errors for the other two subject kinds, in upstream's order.
    for (other, field) in [SUBJECTS[1], SUBJECTS[2], SUBJECTS[0]] {
        if other != kind && subject.has(field) {
            let detail = format!("{field} is forbidden when subject kind is not '{other}'");
            errors.push(FieldError::forbidden(&path.child(field), detail));
        }
    }
    errors
}

/// Checks that `*` is the only element, if present.
fn wildcard(rule: &Value, name: &str, what: &str, path: &Path) -> Option<FieldError> {
    let values = rule.list_at(name);
    let lonely = values.len() < 2 || !values.iter().any(|value| value == "*");
    let detail = format!("if '*' is present, must not specify other {what}");
    (!lonely).then(|| FieldError::invalid(&path.child(name), values.to_vec(), detail))
}

fn verbs(rule: &Value, path: &Path) -> Option<FieldError> {
    let verbs = strings(rule, "verbs");
    if verbs.is_empty() {
        return Some(FieldError::required(&path.child("verbs"), "verbs must contain at least one value"));
    }
    if verbs.contains(&"*") {
        return wildcard(rule, "verbs", "verbs", path);
    }
    let unknown = verbs.iter().any(|verb| !VERBS.contains(verb));
    unknown.then(|| FieldError::not_supported(&path.child("verbs"), rule.at("verbs").clone(), &VERBS))
}

fn resource_rule(rule: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    errors.extend(verbs(rule, path));
    for (name, one, many) in
        [("apiGroups", "api group", "api groups"), ("resources", "resource", "resources")]
    {
        if rule.list_at(name).is_empty() {
            let detail = format!("resource rules must supply at least one {one}");
            errors.push(FieldError::required(&path.child(name), detail));
        }
        errors.extend(wildcard(rule, name, many, path));
    }
    let namespaces = strings(rule, "namespaces");
    let path = path.child("namespaces");
    if namespaces.is_empty() && !rule.bool_at("clusterScope") {
        let detail = "resource rules that are not cluster scoped must supply at least one namespace";
        errors.push(FieldError::required(&path, detail));
    } else if namespaces.contains(&"*") {
        if namespaces.len() > 1 {
            let detail = "if '*' is present, must not specify other namespaces";
            errors.push(FieldError::invalid(&path, rule.at("namespaces").clone(), detail));
        }
    } else {
        for (i, namespace) in namespaces.iter().enumerate() {
            for message in names::dns1123_label(namespace) {
                let detail = format!("each member of this list must be '*' or a DNS-1123 label; {message}");
                errors.push(FieldError::invalid(&path.index(i), *namespace, detail));
            }
        }
    }
    errors
}

fn url_rule(rule: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    errors.extend(verbs(rule, path));
    let urls = strings(rule, "nonResourceURLs");
    if urls.is_empty() {
        let detail = "nonResourceURLs must contain at least one value";
        errors.push(FieldError::required(&path.child("nonResourceURLs"), detail));
    } else if urls.contains(&"*") {
        errors.extend(wildcard(rule, "nonResourceURLs", "non-resource URLs", path));
    } else {
        let path = path.child("nonResourceURLs");
        errors.extend(urls.iter().enumerate().filter_map(|(i, url)| url_path(url, &path.index(i))));
    }
    errors
}

fn url_path(url: &str, path: &Path) -> Option<FieldError> {
    let detail = if url.is_empty() {
        "must not be empty"
    } else if url == "/" {
        return None;
    } else if !url.starts_with('/') {
        "must start with slash"
    } else if url.contains(' ') {
        "must not contain white-space"
    } else if url.contains("//") {
        "must not contain double slash"
    } else if url.strip_suffix("/*").unwrap_or(url).contains('*') {
        "wildcard can only do suffix matching"
    } else {
        return None;
    };
    Some(FieldError::invalid(path, url, detail))
}
