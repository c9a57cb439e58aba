//! Validation of subresources, printer columns and selectable fields.

use serde_json::Value;

use super::super::fieldpath;
use super::super::schema::Schema;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::object::Fields as _;

/// Maximum number of selectable fields.
pub(super) const MAX_SELECTABLE: usize = 8;

const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const FORMATS: [&str; 8] = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];

/// Validates subresources.
pub(super) fn subresources(subresources: Option<&Value>, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let Some(scale) = subresources.map(|subresources| subresources.at("scale")).filter(|s| !s.is_null())
    else {
        return errors;
    };
    let checks: [(&str, &[&str], &str); 3] = [
        ("specReplicasPath", &[".spec."], "should be a json path under .spec"),
        ("statusReplicasPath", &[".status."], "should be a json path under .status"),
        ("labelSelectorPath", &[".spec.", ".status."], "should be a json path under either .spec or .status"),
    ];
    for (field, parents, detail) in checks {
        let value = scale.str_at(field);
        let path = path.child("scale").child(field);
        if value.is_empty() {
            if field != "labelSelectorPath" {
                errors.push(FieldError::required(&path, ""));
            }
        } else if let Some(error) = simple_path(value, &path) {
            errors.push(error);
        } else if !parents.iter().any(|parent| value.starts_with(parent)) {
            errors.push(FieldError::invalid(&path, value, detail));
        }
    }
    errors
}

/// Validates printer columns.
pub(super) fn columns(columns: &[Value], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (i, column) in columns.iter().enumerate() {
        let path = path.index(i);
        if column.str_at("name").is_empty() {
            errors.push(FieldError::required(&path.child("name"), ""));
        }
        let kind = column.str_at("type");
        let kinds = format!("must be one of {}", TYPES.join(","));
        if kind.is_empty() {
            errors.push(FieldError::required(&path.child("type"), kinds));
        } else if !TYPES.contains(&kind) {
            errors.push(FieldError::invalid(&path.child("type"), kind, kinds));
        }
        let format = column.str_at("format");
        if !format.is_empty() && !FORMATS.contains(&format) {
            let formats = format!("must be one of {}", FORMATS.join(","));
            errors.push(FieldError::invalid(&path.child("format"), format, formats));
        }
        let json_path = column.str_at("jsonPath");
        if json_path.is_empty() {
            errors.push(FieldError::required(&path.child("JSONPath"), ""));
        } else {
            errors.extend(simple_path(json_path, &path.child("JSONPath")));
        }
    }
    errors
}

fn simple_path(value: &str, path: &Path) -> Option<FieldError> {
    let detail = "must be a simple json path starting with .";
    (!value.starts_with('.')).then(|| FieldError::invalid(path, value, detail))
}

/// Validates selectable fields. `many` allows more than [`MAX_SELECTABLE`].
pub(super) fn selectable_fields(fields: &[Value], schema: Schema<'_>, many: bool, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut known: Vec<String> = Vec::new();
    for (i, field) in fields.iter().enumerate() {
        let json_path = field.str_at("jsonPath");
        let path = path.index(i).child("jsonPath");
        if json_path.is_empty() {
            errors.push(FieldError::required(&path, ""));
            continue;
        }
        let found = match fieldpath::resolve_fields(json_path, schema.0) {
            Ok(found) => found,
            Err(error) => {
                errors.push(FieldError::invalid(&path, json_path, format!("is an invalid path: {error}")));
                continue;
            }
        };
        let name = found.path.as_str();
        // The first part of the path; the whole path if a map key contains a dot.
        if name.split(['.', '[']).next() == Some("metadata") {
            errors.push(FieldError::invalid(&path, json_path, "must not point to fields in metadata"));
        }
        let kind = found.schema.map(|schema| Schema(schema).kind()).unwrap_or_default();
        if !["string", "boolean", "integer"].contains(&kind) {
            errors.push(FieldError::invalid(
                &path,
                json_path,
                "must point to a field of type string, boolean or integer. Enum string fields and strings with \
                 formats are allowed.",
            ));
        }
        if known.iter().any(|known| known == name) {
            errors.push(FieldError::duplicate(&path, json_path));
        } else {
            known.push(name.to_owned());
        }
    }
    if known.len() > MAX_SELECTABLE && !many {
        errors.push(FieldError::too_many(path, known.len(), MAX_SELECTABLE));
    }
    errors
}
