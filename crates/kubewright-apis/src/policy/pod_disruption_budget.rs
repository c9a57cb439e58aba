//! PodDisruptionBudget.

use serde_json::Value;

use crate::convert::Ordered;
use crate::kinds::KindRules;
use crate::registry::RegistryRules;
use crate::strategy::{keep_status_and_count, reset_status_and_generation};
use crate::table::row::Row;
use crate::validation::{conditions, int_or_percent, label_selector, not_negative_all};
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::meta::NameRule;
use kubewright_apimachinery::object::Fields as _;

pub(crate) const RULES: KindRules = KindRules {
    group: "policy",
    kind: "PodDisruptionBudget",
    prepare_create: reset_status_and_generation,
    prepare_update: keep_status_and_count,
    name: |_| NameRule::PathSegment,
    update_checks: &[],
    subresource_checks: |_| &[],
    validate,
    validate_update: |new, _| validate(new),
    validate_subresource: |subresource, new, _| match subresource {
        "status" => status(new),
        _ => ErrorList::new(),
    },
    cells,
    registry: RegistryRules::CONDITIONAL_UPDATE,
    ..KindRules::DEFAULT
};

/// Validates a budget on create and update. No field is immutable.
fn validate(object: &Value) -> ErrorList {
    let path = Path::new("spec");
    let spec = object.at("spec");
    let mut errors = ErrorList::new();
    if spec.has("minAvailable") && spec.has("maxUnavailable") {
        let detail = "minAvailable and maxUnavailable cannot be both set";
        errors.push(FieldError::invalid_printed(&path, printed_spec(spec), detail));
    }
    for name in ["minAvailable", "maxUnavailable"] {
        if spec.has(name) {
            errors.extend(int_or_percent::validate(spec.at(name), &path.child(name)));
            errors.extend(int_or_percent::at_most_all(spec.at(name), &path.child(name)));
        }
    }
    errors.extend(label_selector::validate(spec.at("selector"), &path.child("selector")));
    if spec.has("unhealthyPodEvictionPolicy") {
        let policy = spec.str_at("unhealthyPodEvictionPolicy");
        let supported = ["AlwaysAllow", "IfHealthyBudget"];
        if !supported.contains(&policy) {
            let at = path.child("unhealthyPodEvictionPolicy");
            errors.push(FieldError::not_supported(&at, policy, &supported));
        }
    }
    errors
}

fn status(object: &Value) -> ErrorList {
    let path = Path::new("status");
    let status = object.at("status");
    let mut errors = conditions::validate(status.list_at("conditions"), &path.child("conditions"));
    let counts = ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"];
    errors.extend(not_negative_all(status, &counts, &path));
    errors
}

/// The spec, printed like upstream's internal type.
fn printed_spec(spec: &Value) -> String {
    Ordered::new()
        .member("MinAvailable", spec.at("minAvailable"))
        .text("Selector", &label_selector::printed(spec.at("selector")))
        .member("MaxUnavailable", spec.at("maxUnavailable"))
        .member("UnhealthyPodEvictionPolicy", spec.at("unhealthyPodEvictionPolicy"))
        .finish()
}

fn cells(row: &Row<'_>) -> Vec<Value> {
    let bound = |path: &str| match row.object.at(path) {
        Value::Null => "N/A".into(),
        Value::Number(number) => number.to_string().into(),
        percentage => percentage.clone(),
    };
    vec![
        row.name(),
        bound("spec.minAvailable"),
        bound("spec.maxUnavailable"),
        row.number("status.disruptionsAllowed"),
        row.age(),
    ]
}

#[cfg(test)]
mod tests;
