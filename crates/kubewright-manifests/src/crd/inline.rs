//! Inlines references between schemas.
//!
//! schemars emits each type once and references it by name; CRD schemas have no references. The names
//! identify types of Kubernetes ([`upstream`]), so references are inlined here and not by schemars.

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};

use super::upstream::{self, Options};
use crate::schema::{note, union};

/// Schemas by type name.
pub(super) struct Definitions {
    types: Map<String, Value>,
    options: Options,
    /// Recursive types.
    pub(super) recursive: Vec<String>,
}

impl Definitions {
    pub(super) fn new(mut types: Map<String, Value>, options: Options) -> Self {
        for (name, schema) in &mut types {
            if let Value::Object(map) = schema {
                upstream::complete(name, map, options);
            }
        }
        Self { types, options, recursive: Vec::new() }
    }

    /// Replaces all references in `schema`.
    pub(super) fn follow(&mut self, schema: &mut Value) {
        self.within(schema, &mut Vec::new());
    }

    fn within(&mut self, schema: &mut Value, open: &mut Vec<String>) {
        let Value::Object(map) = schema else { return };
        if let Some(Value::String(reference)) = map.remove("$ref") {
            let beside = std::mem::take(map);
            *map = self.resolve(&reference, open);
            overlay(map, beside);
        }
        if let Some(Value::Object(original)) = map.remove(union::ORIGINAL) {
            *map = original;
        }
        for (key, value) in map.iter_mut() {
            match (key.as_str(), value) {
                ("properties" | "patternProperties", Value::Object(fields)) => {
                    for field in fields.values_mut() {
                        self.within(field, open);
                    }
                }
                ("allOf" | "anyOf" | "oneOf" | "prefixItems", Value::Array(all)) => {
                    for one in all {
                        self.within(one, open);
                    }
                }
                ("items" | "additionalProperties" | "not", inner) => self.within(inner, open),
                _ => {}
            }
        }
    }

    fn resolve(&mut self, reference: &str, open: &mut Vec<String>) -> Map<String, Value> {
        let name = decode(reference.rsplit('/').next().unwrap_or_default());
        if open.contains(&name) {
            if !self.recursive.contains(&name) {
                self.recursive.push(name);
            }
            return anything();
        }
        if let Some(known) = upstream::replaced(&name, self.options) {
            return known;
        }
        let Some(mut schema) = self.types.get(&name).cloned() else { return anything() };
        open.push(name);
        self.within(&mut schema, open);
        open.pop();
        match schema {
            Value::Object(map) => map,
            _ => Map::new(),
        }
    }
}

/// Merges keywords next to a reference into the referenced schema. They take precedence.
pub(super) fn overlay(map: &mut Map<String, Value>, beside: Map<String, Value>) {
    for (key, value) in beside {
        match (map.get_mut(&key), value) {
            (Some(Value::Array(known)), Value::Array(more))
                if matches!(key.as_str(), note::KEY | "x-kubernetes-validations") =>
            {
                known.extend(more);
            }
            (_, value) => _ = map.insert(key, value),
        }
    }
}

fn anything() -> Map<String, Value> {
    let any = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    any.as_object().cloned().unwrap_or_default()
}

/// The type name in a reference, which schemars percent-encodes.
fn decode(name: &str) -> String {
    percent_decode_str(name).decode_utf8_lossy().replace("~1", "/").replace("~0", "~")
}
