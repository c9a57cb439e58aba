//! Merges `matchLabelKeys` and `mismatchLabelKeys` into selectors.

use serde_json::{Map, Value, json};

use kubewright_apimachinery::object::Fields as _;

/// Adds requirements with the pod's label values to the selectors of affinity terms and topology spread
/// constraints.
pub(super) fn apply_label_keys(pod: &mut Value) {
    let labels = pod.map_at("metadata.labels").clone();
    for affinity in ["podAffinity", "podAntiAffinity"] {
        let path = format!("spec.affinity.{affinity}");
        let preferred = format!("{path}.preferredDuringSchedulingIgnoredDuringExecution");
        for term in pod.list_mut(&preferred).into_iter().flatten() {
            if let Some(term) = term.at_mut("podAffinityTerm") {
                apply(term, &labels);
            }
        }
        let required = format!("{path}.requiredDuringSchedulingIgnoredDuringExecution");
        for term in pod.list_mut(&required).into_iter().flatten() {
            apply(term, &labels);
        }
    }
    for constraint in pod.list_mut("spec.topologySpreadConstraints").into_iter().flatten() {
        apply(constraint, &labels);
    }
}

fn apply(term: &mut Value, labels: &Map<String, Value>) {
    // A term without a selector matches nothing and stays unchanged.
    if !term.has("labelSelector") {
        return;
    }
    let mut added = Vec::new();
    for (name, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
        for key in term.list_at(name).iter().filter_map(Value::as_str) {
            if let Some(value) = labels.get(key) {
                added.push(json!({"key": key, "operator": operator, "values": [value]}));
            }
        }
    }
    if added.is_empty() {
        return;
    }
    term.default_at("labelSelector.matchExpressions", Vec::<Value>::new());
    if let Some(expressions) = term.list_mut("labelSelector.matchExpressions") {
        expressions.extend(added);
    }
}
