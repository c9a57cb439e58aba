//! Validation of the specs of access reviews.

use serde_json::Value;

use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::json;
use kubewright_apimachinery::meta;
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

/// Validates the attributes: either of a resource or of a URL.
pub(super) fn attributes(spec: &Value) -> ErrorList {
    let path = Path::new("spec");
    let mut errors = ErrorList::new();
    match (spec.has("resourceAttributes"), spec.has("nonResourceAttributes")) {
        (true, true) => {
            let detail = "cannot be specified in combination with resourceAttributes";
            let shown = printed(spec.at("nonResourceAttributes"));
            errors.push(FieldError::invalid_printed(&path.child("nonResourceAttributes"), shown, detail));
        }
        (false, false) => {
            let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            errors.push(FieldError::invalid(&path.child("resourceAttributes"), Value::Null, detail));
        }
        _ => {}
    }
    let resource = spec.at("resourceAttributes");
    for name in ["fieldSelector", "labelSelector"] {
        if resource.has(name) {
            errors.extend(selector(resource.at(name), &path.child("resourceAttributes").child(name)));
        }
    }
    errors
}

/// Validates a selector: either a raw string or requirements.
fn selector(selector: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let raw = selector.str_at("rawSelector");
    let requirements = selector.list_at("requirements");
    if !raw.is_empty() && !requirements.is_empty() {
        let detail = "may not specified at the same time as requirements";
        errors.push(FieldError::invalid(&path.child("rawSelector"), raw, detail));
    }
    if raw.is_empty() && requirements.is_empty() {
        let detail = format!("when {path} is specified, requirements or rawSelector is required");
        errors.push(FieldError::required(&path.child("requirements"), detail));
    }
    for (i, requirement) in requirements.iter().enumerate() {
        errors.extend(one_requirement(requirement, &path.child("requirements").index(i)));
    }
    errors
}

fn one_requirement(requirement: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let key = requirement.str_at("key");
    if path.as_str().contains("labelSelector") {
        errors.extend(meta::invalid(&path.child("key"), key, names::label_key(key)));
    } else if key.is_empty() {
        errors.push(FieldError::required(&path.child("key"), "must be specified"));
    }
    let none = requirement.list_at("values").is_empty();
    match requirement.str_at("operator") {
        "In" | "NotIn" if none => {
            let detail = "must be specified when `operator` is 'In' or 'NotIn'";
            errors.push(FieldError::required(&path.child("values"), detail));
        }
        "Exists" | "DoesNotExist" if !none => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(FieldError::forbidden(&path.child("values"), detail));
        }
        // Newer clients may send other operators.
        _ => {}
    }
    errors
}

/// Non-resource attributes with Go's field names.
pub(super) fn printed(attributes: &Value) -> String {
    format!(
        "{{\"Path\":{},\"Verb\":{}}}",
        json::quote(attributes.str_at("path")),
        json::quote(attributes.str_at("verb"))
    )
}

#[cfg(test)]
mod tests;
