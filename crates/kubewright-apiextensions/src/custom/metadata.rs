//! Metadata of custom resources and embedded resources. Always Go's `ObjectMeta`, independent of the schema.

use serde_json::Value;

use super::print::{go_type, shown};
use crate::structural::Structural;
use kubewright_apimachinery::decode;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::json::{self, MAX_STRICT_ERRORS, ParseOptions};
use kubewright_apimachinery::meta::{self, NameRule};
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::types::{FieldType, Type, type_named};

/// How to handle malformed metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    /// Return an error.
    Refuse,
    /// Drop the malformed fields. For objects that are already stored.
    Drop,
}

/// Normalises `metadata`, `apiVersion` and `kind` of embedded resources. Returns the sorted paths of unknown
/// metadata fields. With `whole_object`, the value itself is a resource.
pub fn coerce_metadata(
    schema: &Structural,
    value: &mut Value,
    path: &Path,
    whole_object: bool,
    malformed: Malformed,
) -> Result<Vec<String>, FieldError> {
    let mut coercer = Coercer { malformed, unknown: Vec::new() };
    if whole_object || schema.contains.embedded {
        coercer.value(schema, value, path, whole_object || schema.embedded_resource)?;
    }
    coercer.unknown.sort_unstable();
    Ok(coercer.unknown)
}

/// Validates `metadata`, `apiVersion` and `kind` of embedded resources. With `whole_object`, the value itself
/// is a resource.
pub fn validate_metadata(schema: &Structural, value: &Value, path: &Path, whole_object: bool) -> ErrorList {
    let mut errors = ErrorList::new();
    if whole_object || schema.contains.embedded {
        check(schema, value, path, whole_object || schema.embedded_resource, &mut errors);
    }
    errors
}

/// Converts metadata to the form that Go would serialize. The error is Go's.
pub(super) fn coerce(metadata: &mut Value, malformed: Malformed) -> Result<(), String> {
    if metadata.is_null() {
        *metadata = Value::Object(serde_json::Map::new());
        return Ok(());
    }
    if has_float(metadata) {
        // Serialization turns `1.0` into an integer.
        let text = json::to_vec(metadata);
        *metadata = json::parse(&text, ParseOptions::default()).map_err(|error| error.to_string())?.value;
    }
    match malformed {
        Malformed::Refuse => {
            decode::normalise(object_meta(), metadata).map_err(|error| error.to_string())?;
        }
        Malformed::Drop => {
            let mut whole = metadata.clone();
            if decode::normalise(object_meta(), &mut whole).is_ok() {
                *metadata = whole;
                return Ok(());
            }
            let kind = go_type(metadata);
            let Value::Object(fields) = metadata else {
                return Err(format!("invalid metadata: expected object, got {kind}"));
            };
            fields.retain(|name, field| {
                let mut single = Value::Object([(name.clone(), field.clone())].into_iter().collect());
                decode::normalise(object_meta(), &mut single).is_ok()
            });
            decode::normalise(object_meta(), metadata).map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

/// The paths of unknown metadata fields, sorted, with `prefix` and a dot.
pub(super) fn unknown_fields(metadata: &Value, prefix: &str) -> Vec<String> {
    let mut unknown = Vec::new();
    unknown_in(object_meta(), metadata, prefix, &mut unknown);
    unknown
}

fn unknown_in(ty: &'static Type, value: &Value, path: &str, unknown: &mut Vec<String>) {
    for (name, field) in value.as_object().into_iter().flatten() {
        match ty.field(name) {
            Some(known) => unknown_of(&known.ty, field, path, name, unknown),
            None if unknown.len() < MAX_STRICT_ERRORS => unknown.push(format!("{path}.{name}")),
            None => return,
        }
    }
}

fn unknown_of(ty: &'static FieldType, value: &Value, path: &str, name: &str, unknown: &mut Vec<String>) {
    match (ty, value) {
        (FieldType::Object(of), Value::Object(_)) => {
            unknown_in(of.get(), value, &format!("{path}.{name}"), unknown);
        }
        (FieldType::List(of), Value::Array(items)) => {
            for (index, item) in items.iter().enumerate() {
                unknown_of(of, item, path, &format!("{name}[{index}]"), unknown);
            }
        }
        _ => {}
    }
}

fn object_meta() -> &'static Type {
    type_named("meta.v1.ObjectMeta").expect("the type is in the table")
}

fn has_float(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_f64(),
        Value::Array(items) => items.iter().any(has_float),
        Value::Object(fields) => fields.values().any(has_float),
        _ => false,
    }
}

struct Coercer {
    malformed: Malformed,
    unknown: Vec<String>,
}

impl Coercer {
    fn value(
        &mut self,
        schema: &Structural,
        value: &mut Value,
        path: &Path,
        resource: bool,
    ) -> Result<(), FieldError> {
        match value {
            Value::Object(fields) => {
                if resource {
                    self.resource(fields, path)?;
                }
                for (name, field) in fields {
                    let (of, at) = match (schema.properties.get(name), schema.additional_schema()) {
                        (Some(property), _) if property.contains.embedded => (property, path.child(name)),
                        (None, Some(further)) if further.contains.embedded => (further, path.key(name)),
                        _ => continue,
                    };
                    self.value(of, field, &at, of.embedded_resource)?;
                }
            }
            Value::Array(items) => {
                if let Some(of) = schema.items.as_deref().filter(|of| of.contains.embedded) {
                    for (index, item) in items.iter_mut().enumerate() {
                        self.value(of, item, &path.index(index), of.embedded_resource)?;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn resource(
        &mut self,
        fields: &mut serde_json::Map<String, Value>,
        path: &Path,
    ) -> Result<(), FieldError> {
        for name in ["apiVersion", "kind"] {
            match (fields.get(name), self.malformed) {
                (None | Some(Value::String(_)), _) => {}
                (Some(_), Malformed::Drop) => {
                    fields.remove(name);
                }
                (Some(value), Malformed::Refuse) => {
                    let at = path.child(name);
                    return Err(FieldError::invalid_printed(&at, shown(value), "must be a string"));
                }
            }
        }
        let Some(metadata) = fields.get_mut("metadata") else { return Ok(()) };
        let at = path.child("metadata");
        let unknown = unknown_fields(metadata, at.as_str());
        let given = shown(metadata);
        match (coerce(metadata, self.malformed), self.malformed) {
            (Ok(()), _) => self.unknown.extend(unknown),
            (Err(_), Malformed::Drop) => {}
            (Err(error), Malformed::Refuse) => return Err(FieldError::invalid_printed(&at, given, error)),
        }
        Ok(())
    }
}

fn check(schema: &Structural, value: &Value, path: &Path, resource: bool, errors: &mut ErrorList) {
    match value {
        Value::Object(fields) => {
            if resource {
                check_resource(value, path, errors);
            }
            for (name, field) in fields {
                match (schema.properties.get(name), schema.additional_schema()) {
                    (Some(of), _) if of.contains.embedded => {
                        check(of, field, &path.child(name), of.embedded_resource, errors);
                    }
                    (None, Some(of)) if of.contains.embedded => {
                        check(of, field, &path.key(name), of.embedded_resource, errors);
                    }
                    _ => {}
                }
            }
        }
        Value::Array(items) => {
            if let Some(of) = schema.items.as_deref().filter(|of| of.contains.embedded) {
                for (index, item) in items.iter().enumerate() {
                    check(of, item, &path.index(index), of.embedded_resource, errors);
                }
            }
        }
        _ => {}
    }
}

fn check_resource(resource: &Value, path: &Path, errors: &mut ErrorList) {
    for name in ["apiVersion", "kind"] {
        if resource.get(name).is_none() {
            errors.push(FieldError::required(&path.child(name), ""));
        }
    }
    for (name, rule) in
        [("apiVersion", api_version_error as fn(&str) -> Option<String>), ("kind", kind_error)]
    {
        let Some(value) = resource.get(name) else { continue };
        let detail = match value {
            Value::String(text) if text.is_empty() => Some("must not be empty".to_owned()),
            Value::String(text) => rule(text),
            _ => Some("must be a string".to_owned()),
        };
        errors.extend(
            detail.map(|detail| FieldError::invalid_printed(&path.child(name), shown(value), detail)),
        );
    }
    let Some(given) = resource.get("metadata") else { return };
    let at = path.child("metadata");
    let mut metadata = given.clone();
    if let Err(error) = coerce(&mut metadata, Malformed::Refuse) {
        errors.push(FieldError::invalid_printed(&at, shown(given), error));
        return;
    }
    // Embedded resources need no name.
    metadata.default_at("name", "fakename");
    let namespaced = !metadata.str_at("namespace").is_empty();
    errors.extend(meta::object_meta(&metadata, namespaced, &NameRule::PathSegment, &at));
}

fn api_version_error(text: &str) -> Option<String> {
    (text.matches('/').count() > 1).then(|| format!("unexpected GroupVersion string: {text}"))
}

fn kind_error(text: &str) -> Option<String> {
    let messages = names::dns1035_label(&text.to_lowercase());
    (!messages.is_empty())
        .then(|| format!("may have mixed case, but should otherwise match: {}", messages.join(",")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Structural {
        Structural::parse(&json!({"type": "object", "properties": {
            "e": {"type": "object", "x-kubernetes-embedded-resource": true},
            "m": {"type": "object", "additionalProperties": {"type": "object", "x-kubernetes-embedded-resource": true}},
        }}))
        .unwrap()
    }

    fn coerced(mut value: Value, malformed: Malformed) -> Result<(Value, Vec<String>), String> {
        coerce_metadata(&schema(), &mut value, &Path::root(), false, malformed)
            .map(|unknown| (value, unknown))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn unknown_fields_of_metadata_are_dropped() {
        let given = json!({"m": {"k": {"metadata": {"name": "x", "bogus": 1, "ownerReferences": [{"nope": 1}], "generation": 2.0}}}});
        let (value, unknown) = coerced(given, Malformed::Refuse).unwrap();
        assert_eq!(value["m"]["k"]["metadata"]["generation"], json!(2));
        assert_eq!(value["m"]["k"]["metadata"].get("bogus"), None);
        assert_eq!(unknown, ["m[k].metadata.bogus", "m[k].metadata.ownerReferences[0].nope"]);
    }

    #[test]
    fn wrong_types_are_rejected_or_dropped() {
        let labels = json!({"e": {"kind": 1, "metadata": {"name": "x", "labels": {"a": 1}}}});
        assert_eq!(
            coerced(labels.clone(), Malformed::Refuse).unwrap_err(),
            "e.kind: Invalid value: 1: must be a string"
        );
        assert_eq!(
            coerced(labels, Malformed::Drop).unwrap(),
            (json!({"e": {"metadata": {"name": "x"}}}), Vec::new())
        );
        assert_eq!(
            coerced(json!({"e": {"metadata": "x"}}), Malformed::Refuse).unwrap_err(),
            r#"e.metadata: Invalid value: "x": json: cannot unmarshal string into Go value of type v1.ObjectMeta"#
        );
    }

    #[test]
    fn an_embedded_resource_needs_api_version_and_kind() {
        let errors = |value: &Value| -> Vec<String> {
            validate_metadata(&schema(), value, &Path::root(), false)
                .iter()
                .map(ToString::to_string)
                .collect()
        };
        assert_eq!(errors(&json!({"e": {}})), ["e.apiVersion: Required value", "e.kind: Required value"]);
        assert_eq!(
            errors(&json!({"e": {"apiVersion": "a/b/c", "kind": ""}})),
            [
                r#"e.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c"#,
                r#"e.kind: Invalid value: "": must not be empty"#
            ]
        );
        assert!(
            errors(&json!({"e": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "BAD NAME"}}}))
                .is_empty()
        );
        assert_eq!(
            errors(&json!({"e": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a/b", "namespace": "x y"}}})).len(),
            2
        );
    }
}
