//! Pruning of unknown fields.
//!
//! Considers only the structure of the schema: fields of a wrong type are kept and reported by validation.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::structural::{Additional, Structural};

/// Removes unknown fields of an object. Returns them sorted, as strict decoding errors: `unknown field
/// "spec.x"`. Keeps `apiVersion`, `kind` and `metadata`, also in embedded resources.
pub fn prune(schema: &Structural, object: &mut Value) -> Vec<String> {
    prune_paths(schema, object, true).iter().map(|path| unknown_field(path)).collect()
}

/// Like [`prune`], for any value; returns the paths only. With `whole_object`, the value is a resource even
/// if the schema does not say so.
pub fn prune_paths(schema: &Structural, value: &mut Value, whole_object: bool) -> Vec<String> {
    let mut pruner = Pruner::default();
    pruner.value(Some(schema), value, whole_object || schema.embedded_resource);
    pruner.unknown.sort_unstable();
    pruner.unknown
}

/// Removes nulls that are neither nullable nor have a default.
pub fn prune_nulls(schema: &Structural, value: &mut Value) {
    match value {
        Value::Object(fields) => fields.retain(|name, field| {
            let Some(schema) = schema.field(name) else { return true };
            if field.is_null() {
                return schema.nullable || schema.default.is_some();
            }
            prune_nulls(schema, field);
            true
        }),
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                for item in items {
                    prune_nulls(schema, item);
                }
            }
        }
        _ => {}
    }
}

/// The strict decoding error of an unknown field. Upstream does not escape the path.
pub(super) fn unknown_field(path: &str) -> String {
    format!("unknown field \"{path}\"")
}

#[derive(Default)]
struct Pruner {
    path: String,
    unknown: Vec<String>,
}

impl Pruner {
    fn value(&mut self, schema: Option<&Structural>, value: &mut Value, resource: bool) {
        match value {
            Value::Object(fields) => self.object(schema, fields, resource),
            Value::Array(items) => {
                let preserve = schema.is_some_and(|schema| schema.preserve_unknown_fields);
                let of = schema.and_then(|schema| schema.items.as_deref());
                if preserve && of.is_none() {
                    return;
                }
                for (index, item) in items.iter_mut().enumerate() {
                    let length = self.path.len();
                    write!(self.path, "[{index}]").unwrap_or_default();
                    if preserve {
                        self.preserved(of, item);
                    } else {
                        self.value(of, item, of.is_some_and(|of| of.embedded_resource));
                    }
                    self.path.truncate(length);
                }
            }
            _ => {}
        }
    }

    /// Visits an item of a list that preserves unknown fields: its items do too.
    fn preserved(&mut self, schema: Option<&Structural>, value: &mut Value) {
        let Some(schema) = schema else { return };
        match value {
            Value::Object(fields) => self.known(schema, fields, schema.embedded_resource),
            Value::Array(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    let length = self.path.len();
                    write!(self.path, "[{index}]").unwrap_or_default();
                    self.preserved(schema.items.as_deref(), item);
                    self.path.truncate(length);
                }
            }
            _ => {}
        }
    }

    fn object(&mut self, schema: Option<&Structural>, fields: &mut Map<String, Value>, resource: bool) {
        let Some(schema) = schema else {
            for name in fields.keys() {
                self.record(name);
            }
            fields.clear();
            return;
        };
        if schema.preserve_unknown_fields {
            return self.known(schema, fields, resource);
        }
        let top = self.path.is_empty();
        fields.retain(|name, field| {
            if resource && is_meta(name) {
                return true;
            }
            if schema.properties.contains_key(name) || schema.additional.is_some() {
                self.field(schema, name, field);
                return true;
            }
            if !(top && is_meta(name)) {
                self.record(name);
            }
            false
        });
    }

    /// Prunes inside the declared fields and keeps all others.
    fn known(&mut self, schema: &Structural, fields: &mut Map<String, Value>, resource: bool) {
        for (name, field) in fields {
            if !(resource && is_meta(name)) {
                self.field(schema, name, field);
            }
        }
    }

    fn field(&mut self, schema: &Structural, name: &str, field: &mut Value) {
        let of = match (schema.properties.get(name), &schema.additional) {
            (Some(property), _) => Some(property),
            (None, Some(Additional::Schema(schema))) => Some(&**schema),
            // The field is declared, but its content has no schema.
            (None, Some(Additional::Allowed(_))) => None,
            (None, None) => return,
        };
        if !matches!(field, Value::Object(_) | Value::Array(_)) {
            return;
        }
        let length = self.path.len();
        self.step(name);
        self.value(of, field, of.is_some_and(|of| of.embedded_resource));
        self.path.truncate(length);
    }

    fn record(&mut self, name: &str) {
        let length = self.path.len();
        self.step(name);
        self.unknown.push(self.path.clone());
        self.path.truncate(length);
    }

    fn step(&mut self, name: &str) {
        if !self.path.is_empty() {
            self.path.push('.');
        }
        self.path.push_str(name);
    }
}

fn is_meta(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema(value: &Value) -> Structural {
        Structural::parse(value).unwrap()
    }

    #[test]
    fn unknown_fields_are_pruned_and_reported_in_order() {
        let schema = schema(
            &json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
                "a": {"type": "string"},
                "l": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "string"}}}},
                "m": {"type": "object", "additionalProperties": {"type": "object", "properties": {"x": {"type": "string"}}}},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                         "properties": {"known": {"type": "object", "properties": {"x": {"type": "string"}}}}},
            }}}}),
        );
        let mut object = json!({"apiVersion": "g/v1", "kind": "W", "metadata": {"bogus": 1}, "other": {"z": 1},
            "spec": {"a": 1, "z": 1, "l": [{"x": "1", "y": "2"}], "m": {"k": {"y": "2"}},
                     "free": {"any": {"thing": [1]}, "known": {"x": "1", "y": "2"}}}});
        assert_eq!(
            prune(&schema, &mut object),
            [
                r#"unknown field "other""#,
                r#"unknown field "spec.free.known.y""#,
                r#"unknown field "spec.l[0].y""#,
                r#"unknown field "spec.m.k.y""#,
                r#"unknown field "spec.z""#
            ]
        );
        assert_eq!(
            object,
            json!({"apiVersion": "g/v1", "kind": "W", "metadata": {"bogus": 1},
                "spec": {"a": 1, "l": [{"x": "1"}], "m": {"k": {}}, "free": {"any": {"thing": [1]}, "known": {"x": "1"}}}})
        );
    }

    #[test]
    fn embedded_resources_keep_their_metadata() {
        let schema = schema(&json!({"type": "object", "properties": {"e": {"type": "object",
            "x-kubernetes-embedded-resource": true, "properties": {"spec": {"type": "object"}}}}}));
        let mut object = json!({"e": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {"a": 1}, "status": {}}});
        assert_eq!(
            prune(&schema, &mut object),
            [r#"unknown field "e.spec.a""#, r#"unknown field "e.status""#]
        );
        assert_eq!(
            object,
            json!({"e": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {}}})
        );
    }

    #[test]
    fn an_object_of_an_unknown_version_is_pruned_completely() {
        let mut object =
            json!({"apiVersion": "g/v2", "kind": "W", "metadata": {"name": "w"}, "spec": {"a": 1}});
        assert_eq!(prune(&Structural::default(), &mut object), [r#"unknown field "spec""#]);
    }

    #[test]
    fn the_content_of_fields_without_a_schema_is_pruned() {
        let schema = schema(
            &json!({"type": "object", "properties": {"m": {"type": "object", "additionalProperties": true}}}),
        );
        let mut object = json!({"m": {"a": {"b": 1}, "c": [{"d": 1}], "e": 2}});
        assert_eq!(prune(&schema, &mut object), [r#"unknown field "m.a.b""#, r#"unknown field "m.c[0].d""#]);
        assert_eq!(object, json!({"m": {"a": {}, "c": [{}], "e": 2}}));
    }

    #[test]
    fn nulls_are_pruned_unless_nullable_or_defaulted() {
        let schema = schema(&json!({"type": "object", "properties": {
            "a": {"type": "string"}, "b": {"type": "string", "nullable": true}, "c": {"type": "string", "default": "x"},
            "l": {"type": "array", "items": {"type": "object", "additionalProperties": {"type": "string"}}},
        }}));
        let mut object =
            json!({"a": null, "b": null, "c": null, "l": [null, {"x": null, "y": "1"}], "z": null});
        prune_nulls(&schema, &mut object);
        assert_eq!(object, json!({"b": null, "c": null, "l": [null, {"y": "1"}], "z": null}));
    }
}
