//! Validation of `metav1.LabelSelector`.
//!
//! Matching is in [`kubewright_apimachinery::selector::LabelSelector`].

use serde_json::Value;

use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::json;
use kubewright_apimachinery::meta;
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

/// Validates a selector. An absent one is valid; kinds check whether it is required.
pub(crate) fn validate(selector: &Value, path: &Path) -> ErrorList {
    let mut errors = meta::labels(selector.at("matchLabels"), &path.child("matchLabels"));
    for (i, expression) in selector.list_at("matchExpressions").iter().enumerate() {
        errors.extend(requirement(expression, &path.child("matchExpressions").index(i)));
    }
    errors
}

/// Whether a selector is empty and therefore selects everything.
pub(crate) fn is_empty(selector: &Value) -> bool {
    selector.map_at("matchLabels").is_empty() && selector.list_at("matchExpressions").is_empty()
}

/// A selector as printed in messages, with Go's field order.
pub(crate) fn printed(selector: &Value) -> String {
    if selector.is_null() {
        return "null".to_owned();
    }
    let mut members = Vec::new();
    if !selector.map_at("matchLabels").is_empty() {
        members.push(format!("\"matchLabels\":{}", json::to_string(selector.at("matchLabels"))));
    }
    if !selector.list_at("matchExpressions").is_empty() {
        // For key, operator and values, alphabetical order equals Go's.
        members.push(format!("\"matchExpressions\":{}", json::to_string(selector.at("matchExpressions"))));
    }
    format!("{{{}}}", members.join(","))
}

/// Returns an error if a selector changed.
pub(crate) fn immutable(new: &Value, old: &Value, path: &Path) -> Option<FieldError> {
    (new != old).then(|| FieldError::invalid_printed(path, printed(new), "field is immutable"))
}

fn requirement(expression: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let values = expression.list_at("values");
    match expression.str_at("operator") {
        "In" | "NotIn" => {
            if values.is_empty() {
                let detail = "must be specified when `operator` is 'In' or 'NotIn'";
                errors.push(FieldError::required(&path.child("values"), detail));
            }
        }
        "Exists" | "DoesNotExist" => {
            if !values.is_empty() {
                let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.push(FieldError::forbidden(&path.child("values"), detail));
            }
        }
        other => {
            errors.push(FieldError::invalid(&path.child("operator"), other, "not a valid selector operator"));
        }
    }
    let key = expression.str_at("key");
    errors.extend(meta::invalid(&path.child("key"), key, names::label_key(key)));
    for (i, value) in values.iter().enumerate() {
        let value = value.as_str().unwrap_or_default();
        errors.extend(meta::invalid(&path.child("values").index(i), value, names::label_value(value)));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(selector: &Value) -> Vec<String> {
        validate(selector, &Path::new("spec").child("selector")).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn operators_require_or_forbid_values() {
        let operator = |operator: &str, values: Value| {
            check(&json!({"matchExpressions": [{"key": "a", "operator": operator, "values": values}]}))
        };
        assert!(operator("In", json!(["b"])).is_empty());
        assert!(operator("Exists", json!(null)).is_empty());
        assert_eq!(
            operator("NotIn", json!([])),
            [
                "spec.selector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' \
              or 'NotIn'"
            ]
        );
        assert_eq!(
            operator("DoesNotExist", json!(["b"])),
            ["spec.selector.matchExpressions[0].values: Forbidden: may not be specified when `operator` is \
              'Exists' or 'DoesNotExist'"]
        );
        assert_eq!(
            operator("Gt", json!(["1"])),
            [
                "spec.selector.matchExpressions[0].operator: Invalid value: \"Gt\": not a valid selector operator"
            ]
        );
    }

    #[test]
    fn an_absent_selector_is_valid() {
        assert!(check(&Value::Null).is_empty());
        assert!(check(&json!({})).is_empty());
    }

    #[test]
    fn a_selector_prints_its_labels_first() {
        let selector = json!({
            "matchExpressions": [{"key": "a", "operator": "Exists"}],
            "matchLabels": {"b": "<"},
        });
        assert_eq!(
            printed(&selector),
            r#"{"matchLabels":{"b":"\u003c"},"matchExpressions":[{"key":"a","operator":"Exists"}]}"#
        );
        assert_eq!(printed(&json!({})), "{}");
        assert_eq!(printed(&Value::Null), "null");
    }
}
