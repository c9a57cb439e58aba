//! PriorityClass. All fields are immutable, so its generation stays 1.

use serde_json::Value;

use crate::kinds::KindRules;
use crate::strategy::start_generation;
use crate::table::row::Row;
use crate::validation::one_of;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::meta;
use kubewright_apimachinery::object::Fields as _;

pub(crate) const RULES: KindRules = KindRules {
    group: "scheduling.k8s.io",
    kind: "PriorityClass",
    defaults: |object| object.default_at("preemptionPolicy", "PreemptLowerPriority"),
    prepare_create: start_generation,
    kube_finalizers: true,
    validate,
    validate_update,
    cells,
    ..KindRules::DEFAULT
};

/// Maximum priority of user-defined classes.
const MAX_USER_PRIORITY: i64 = 1_000_000_000;

/// Names and values of the system priority classes.
const SYSTEM_CLASSES: [(&str, i64); 2] =
    [("system-node-critical", 2_000_001_000), ("system-cluster-critical", 2_000_000_000)];

fn validate(object: &Value) -> ErrorList {
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

fn validate_update(new: &Value, old: &Value) -> ErrorList {
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

fn cells(row: &Row<'_>) -> Vec<Value> {
    vec![row.name(), row.number("value"), row.flag("globalDefault"), row.age(), row.text("preemptionPolicy")]
}

#[cfg(test)]
mod tests;
