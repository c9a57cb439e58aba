//! Validation of resource names, requested and accepted.

use serde_json::Value;

use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::names::dns1035_label;
use kubewright_apimachinery::object::Fields as _;

/// Validates names. All may be missing.
pub(super) fn validate(names: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for field in ["plural", "singular"] {
        let name = names.str_at(field);
        if !name.is_empty() {
            errors.extend(label(name, &path.child(field)));
        }
    }
    for field in ["kind", "listKind"] {
        let name = names.str_at(field);
        let problems = dns1035_label(&name.to_lowercase());
        if !name.is_empty() && !problems.is_empty() {
            let detail = format!("may have mixed case, but should otherwise match: {}", problems.join(","));
            errors.push(FieldError::invalid(&path.child(field), name, detail));
        }
    }
    errors.extend(labels(names, "shortNames", path));
    let kind = names.str_at("kind");
    if !kind.is_empty() && kind == names.str_at("listKind") {
        let detail = "kind and listKind may not be the same";
        errors.push(FieldError::invalid(&path.child("listKind"), kind, detail));
    }
    errors.extend(labels(names, "categories", path));
    errors
}

fn labels(names: &Value, field: &str, path: &Path) -> ErrorList {
    let list = names.list_at(field).iter().enumerate();
    list.filter_map(|(i, name)| label(name.as_str().unwrap_or_default(), &path.child(field).index(i)))
        .collect()
}

fn label(name: &str, path: &Path) -> Option<FieldError> {
    let problems = dns1035_label(name);
    (!problems.is_empty()).then(|| FieldError::invalid(path, name, problems.join(",")))
}
