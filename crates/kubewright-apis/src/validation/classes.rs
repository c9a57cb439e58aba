//! Validation of PriorityClasses, RuntimeClasses and Leases.

use serde_json::Value;

use super::{not_negative, one_of};
use crate::validation::pods;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path, quote};
use kubewright_apimachinery::meta;
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

/// Maximum priority of user-defined classes.
const MAX_USER_PRIORITY: i64 = 1_000_000_000;
/// Names and values of the system priority classes.
const SYSTEM_CLASSES: [(&str, i64); 2] =
    [("system-node-critical", 2_000_001_000), ("system-cluster-critical", 2_000_000_000)];

pub(super) fn priority_class(object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let name = object.str_at("metadata.name");
    let value = object.int_at("value").unwrap_or_default();
    if name.starts_with("system-") {
        if let Some(problem) = system_class_problem(name, value, object) {
            errors.push(FieldError::forbidden(
                &Path::new("metadata").child("name"),
                format!(
                    "priority class names with 'system-' prefix are reserved for system use only. error: {problem}"
                ),
            ));
        }
    } else if value > MAX_USER_PRIORITY {
        let detail = format!("maximum allowed value of a user defined priority is {MAX_USER_PRIORITY}");
        errors.push(FieldError::forbidden(&Path::new("value"), detail));
    }
    if object.has("preemptionPolicy") {
        let known = ["PreemptLowerPriority", "Never"];
        errors.extend(one_of(object.str_at("preemptionPolicy"), &known, &Path::new("preemptionPolicy")));
    }
    errors
}

pub(super) fn priority_class_update(new: &Value, old: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    if new.int_at("value").unwrap_or_default() != old.int_at("value").unwrap_or_default() {
        errors.push(FieldError::forbidden(&Path::new("value"), "may not be changed in an update."));
    }
    let path = Path::new("preemptionPolicy");
    errors.extend(meta::immutable(new.at("preemptionPolicy"), old.at("preemptionPolicy"), &path));
    errors
}

fn system_class_problem(name: &str, value: i64, object: &Value) -> Option<String> {
    let Some((_, known)) = SYSTEM_CLASSES.iter().find(|(known, _)| *known == name) else {
        return Some(format!("{name} is not a known system priority class"));
    };
    if *known != value {
        return Some(format!("value of {name} PriorityClass must be {known}"));
    }
    object.bool_at("globalDefault").then(|| format!("globalDefault of {name} PriorityClass must be false"))
}

pub(super) fn runtime_class(object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = Path::new("handler");
    match object.str_at("handler") {
        "" => errors.push(FieldError::required(&path, "")),
        handler => errors.extend(meta::invalid(&path, handler, names::dns1123_label(handler))),
    }
    // Upstream validates the overhead as limits.
    let path = Path::new("overhead").child("limits");
    errors.extend(super::limits::container_limits(object.map_at("overhead.podFixed"), &path));
    let path = Path::new("scheduling");
    let selector = object.at("scheduling.nodeSelector");
    errors.extend(meta::labels(selector, &path.child("nodeSelector")));
    errors.extend(tolerations(object.at("scheduling"), &path));
    errors
}

/// Validates the tolerations of a RuntimeClass, which must be unique.
fn tolerations(scheduling: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    pods::tolerations(scheduling, path, &mut errors);
    let path = path.child("tolerations");
    let mut seen = std::collections::HashSet::new();
    for (index, toleration) in scheduling.list_at("tolerations").iter().enumerate() {
        let fields = ["key", "operator", "value", "effect"].map(|field| toleration.str_at(field));
        if !seen.insert(fields) {
            // Printed in the field order of upstream's internal type.
            let [key, operator, value, effect] = fields.map(quote);
            let seconds = toleration.int_at("tolerationSeconds");
            let seconds = seconds.map_or_else(|| "null".to_owned(), |seconds| seconds.to_string());
            let shown = format!(
                "{{\"Key\":{key},\"Operator\":{operator},\"Value\":{value},\"Effect\":{effect},\
                 \"TolerationSeconds\":{seconds}}}"
            );
            errors.push(FieldError::duplicate_printed(&path.index(index), shown));
        }
    }
    errors
}

pub(super) fn runtime_class_update(new: &Value, old: &Value) -> ErrorList {
    let mut errors = runtime_class(new);
    errors.extend(meta::immutable(new.at("handler"), old.at("handler"), &Path::new("handler")));
    errors
}

pub(super) fn lease(object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let spec = object.at("spec");
    let path = Path::new("spec");
    if let Some(seconds @ ..=0) = spec.int_at("leaseDurationSeconds") {
        errors.push(FieldError::invalid(
            &path.child("leaseDurationSeconds"),
            seconds,
            "must be greater than 0",
        ));
    }
    errors.extend(not_negative(spec, "leaseTransitions", &path));
    if !spec.str_at("preferredHolder").is_empty() && spec.str_at("strategy").is_empty() {
        let detail = "may only be specified if `strategy` is defined";
        errors.push(FieldError::forbidden(&path.child("preferredHolder"), detail));
    }
    errors
}
