//! Validation of FlowSchemas and PriorityLevelConfigurations.
//!
//! Does not check the fixed specs of mandatory objects.

use std::collections::HashSet;

use serde_json::Value;

use super::{one_of, strings};
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::meta;
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

const MAX_PRECEDENCE: i64 = 10_000;
const MAX_QUEUES: i64 = 10_000_000;
/// Bits of the hash used for shuffle sharding.
const MAX_HASH_BITS: f64 = 60.0;
const VERBS: [&str; 9] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];

pub(super) fn create(kind: &str, object: &Value) -> ErrorList {
    let mut errors = match kind {
        "FlowSchema" => flow_schema(object.at("spec"), object.str_at("metadata.name")),
        "PriorityLevelConfiguration" => priority_level(object.at("spec"), object.str_at("metadata.name")),
        _ => return ErrorList::new(),
    };
    errors.extend(status(object));
    errors
}

/// Validates the status of either kind.
pub(super) fn status(object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = Path::new("status").child("conditions");
    let conditions = object.list_at("status.conditions");
    let mut seen = HashSet::new();
    for (i, condition) in conditions.iter().enumerate() {
        let path = path.index(i).child("type");
        let kind = condition.str_at("type");
        if !seen.insert(kind) {
            errors.push(FieldError::duplicate(&path, kind));
        }
        if kind.is_empty() {
            errors.push(FieldError::required(&path, "must not be empty"));
        }
    }
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

fn priority_level(spec: &Value, name: &str) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = Path::new("spec");
    let kind = spec.str_at("type");
    if (name == "exempt") != (kind == "Exempt") {
        let detail = "type must be 'Exempt' if and only if name is 'exempt'";
        errors.push(FieldError::invalid(&path.child("type"), kind, detail));
    }
    match kind {
        "Exempt" => {
            if spec.has("limited") {
                let detail = "must be nil if the type is not Limited";
                errors.push(FieldError::forbidden(&path.child("limited"), detail));
            }
            errors.extend(shares(spec.at("exempt"), true, &path.child("exempt")));
        }
        "Limited" => {
            if spec.has("exempt") {
                let detail = "must be nil if the type is Limited";
                errors.push(FieldError::forbidden(&path.child("exempt"), detail));
            }
            let path = path.child("limited");
            if spec.has("limited") {
                errors.extend(shares(spec.at("limited"), false, &path));
                errors.extend(limit_response(spec.at("limited.limitResponse"), &path.child("limitResponse")));
            } else {
                errors.push(FieldError::required(&path, "must not be empty when type is Limited"));
            }
        }
        kind => errors.extend(one_of(kind, &["Exempt", "Limited"], &path.child("type"))),
    }
    errors
}

fn shares(level: &Value, exempt: bool, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if let Some(shares @ ..0) = level.int_at("nominalConcurrencyShares") {
        let detail = "must be a non-negative integer";
        errors.push(FieldError::invalid(&path.child("nominalConcurrencyShares"), shares, detail));
    }
    if let Some(percent) = level.int_at("lendablePercent").filter(|percent| !(0..=100).contains(percent)) {
        let detail = "must be between 0 and 100, inclusive";
        errors.push(FieldError::invalid(&path.child("lendablePercent"), percent, detail));
    }
    if !exempt && let Some(percent @ ..0) = level.int_at("borrowingLimitPercent") {
        let detail = "if specified, must be a non-negative integer";
        errors.push(FieldError::invalid(&path.child("borrowingLimitPercent"), percent, detail));
    }
    errors
}

fn limit_response(response: &Value, path: &Path) -> ErrorList {
    let queuing = path.child("queuing");
    match (response.str_at("type"), response.has("queuing")) {
        ("Reject", true) => {
            let detail = "must be nil if limited.limitResponse.type is not Limited";
            vec![FieldError::forbidden(&queuing, detail)]
        }
        ("Queue", false) => {
            let detail = "must not be empty if limited.limitResponse.type is Limited";
            vec![FieldError::required(&queuing, detail)]
        }
        ("Queue", true) => queues(response.at("queuing"), &queuing),
        ("Reject", false) => ErrorList::new(),
        (kind, _) => one_of(kind, &["Queue", "Reject"], &path.child("type")).into_iter().collect(),
    }
}

fn queues(queuing: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let number = |name: &str| queuing.int_at(name).unwrap_or_default();
    let (limit, queues, hand) = (number("queueLengthLimit"), number("queues"), number("handSize"));
    let mut wrong = |name: &str, value: i64, detail: String| {
        errors.push(FieldError::invalid(&path.child(name), value, detail));
    };
    if limit <= 0 {
        wrong("queueLengthLimit", limit, "must be positive".to_owned());
    }
    if queues <= 0 {
        wrong("queues", queues, "must be positive".to_owned());
    } else if queues > MAX_QUEUES {
        wrong("queues", queues, format!("must not be greater than {MAX_QUEUES}"));
    }
    if hand <= 0 {
        wrong("handSize", hand, "must be positive".to_owned());
    } else if hand > queues {
        wrong("handSize", hand, format!("should not be greater than queues ({queues})"));
    } else if entropy_bits(queues, hand) > MAX_HASH_BITS {
        let detail = format!(
            "required entropy bits of deckSize {queues} and handSize {hand} should not be greater than {MAX_HASH_BITS}"
        );
        wrong("handSize", hand, detail);
    }
    errors
}

/// Entropy bits needed to choose a hand from a deck.
#[expect(clippy::cast_precision_loss, reason = "at most ten million queues")]
fn entropy_bits(deck: i64, hand: i64) -> f64 {
    (0..hand).map(|i| ((deck - i) as f64).log2()).sum::<f64>().ceil()
}
