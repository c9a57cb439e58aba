//! Encodes the v2 document as protobuf: gnostic's `openapi.v2.Document`.
//!
//! Supports only messages and fields that our documents use, and drops others. Values without a schema
//! (`Any`) are encoded as YAML text, of which JSON is a subset.

use serde_json::{Map, Value};

/// Encodes the document.
pub(super) fn document(document: &Value) -> Vec<u8> {
    let mut out = Message(Vec::with_capacity(4 << 20));
    let Some(document) = document.as_object() else { return out.0 };
    out.text(1, document.get("swagger"));
    out.nested(2, document.get("info"), |out, info| {
        out.text(1, info.get("title"));
        out.text(2, info.get("version"));
    });
    out.nested(8, document.get("paths"), |out, paths| {
        out.named(2, paths, path_item);
    });
    out.nested(9, document.get("definitions"), |out, definitions| {
        out.named(1, definitions, schema);
    });
    out.nested(10, document.get("parameters"), |out, parameters| {
        out.named(1, parameters, parameter);
    });
    for requirement in list(document.get("security")) {
        out.nested(12, Some(requirement), |out, requirement| {
            for (name, scopes) in requirement {
                out.message(1, |out| {
                    out.string(1, name);
                    out.message(2, |out| out.strings(1, Some(scopes)));
                });
            }
        });
    }
    out.nested(13, document.get("securityDefinitions"), |out, definitions| {
        // All our security definitions are API keys.
        out.named(1, definitions, |out, key| {
            out.message(2, |out| {
                out.text(1, key.get("type"));
                out.text(2, key.get("name"));
                out.text(3, key.get("in"));
                out.text(4, key.get("description"));
            });
        });
    });
    out.0
}

fn path_item(out: &mut Message, item: &Map<String, Value>) {
    let methods = ["get", "put", "post", "delete", "options", "head", "patch"];
    for (number, method) in (2..).zip(methods) {
        out.nested(number, item.get(method), operation);
    }
    for item in list(item.get("parameters")) {
        out.nested(9, Some(item), parameter_or_reference);
    }
}

fn operation(out: &mut Message, operation: &Map<String, Value>) {
    out.strings(1, operation.get("tags"));
    out.text(3, operation.get("description"));
    out.text(5, operation.get("operationId"));
    out.strings(6, operation.get("produces"));
    out.strings(7, operation.get("consumes"));
    for item in list(operation.get("parameters")) {
        out.nested(8, Some(item), parameter_or_reference);
    }
    out.nested(9, operation.get("responses"), |out, responses| {
        out.named(1, responses, |out, response| {
            // The oneof is a response with a schema.
            out.message(1, |out| {
                out.text(1, response.get("description"));
                if let Some(Value::Object(of)) = response.get("schema") {
                    out.message(2, |out| out.message(1, |out| schema(out, of)));
                }
            });
        });
    });
    out.strings(10, operation.get("schemes"));
    out.extensions(13, operation);
}

fn parameter_or_reference(out: &mut Message, item: &Map<String, Value>) {
    if let Some(reference) = item.get("$ref") {
        out.message(2, |out| out.text(1, Some(reference)));
    } else {
        out.message(1, |out| parameter(out, item));
    }
}

fn parameter(out: &mut Message, item: &Map<String, Value>) {
    let place = item.get("in").and_then(Value::as_str).unwrap_or_default();
    if place == "body" {
        out.message(1, |out| {
            out.text(1, item.get("description"));
            out.text(2, item.get("name"));
            out.text(3, item.get("in"));
            out.flag(4, item.get("required"));
            out.nested(5, item.get("schema"), schema);
        });
        return;
    }
    // Query parameters have an additional field, which shifts the numbers after it.
    let (kind, moved) = if place == "query" { (3, 1) } else { (4, 0) };
    out.message(2, |out| {
        out.message(kind, |out| {
            out.flag(1, item.get("required"));
            out.text(2, item.get("in"));
            out.text(3, item.get("description"));
            out.text(4, item.get("name"));
            out.text(5 + moved, item.get("type"));
            out.text(6 + moved, item.get("format"));
            out.flag(19 + moved, item.get("uniqueItems"));
        });
    });
}

fn schema(out: &mut Message, schema_of: &Map<String, Value>) {
    let get = |key: &str| schema_of.get(key);
    out.text(1, get("$ref"));
    out.text(2, get("format"));
    out.text(3, get("title"));
    out.text(4, get("description"));
    out.any(5, get("default"));
    out.double(6, get("multipleOf"));
    out.double(7, get("maximum"));
    out.flag(8, get("exclusiveMaximum"));
    out.double(9, get("minimum"));
    out.flag(10, get("exclusiveMinimum"));
    out.integer(11, get("maxLength"));
    out.integer(12, get("minLength"));
    out.text(13, get("pattern"));
    out.integer(14, get("maxItems"));
    out.integer(15, get("minItems"));
    out.flag(16, get("uniqueItems"));
    out.integer(17, get("maxProperties"));
    out.integer(18, get("minProperties"));
    out.strings(19, get("required"));
    for value in list(get("enum")) {
        out.any(20, Some(value));
    }
    match get("additionalProperties") {
        Some(Value::Object(of)) => out.message(21, |out| out.message(1, |out| schema(out, of))),
        // A oneof member is also written if it is false.
        Some(Value::Bool(any)) => out.message(21, |out| out.varint_field(2, u64::from(*any))),
        _ => {}
    }
    if let Some(ty) = get("type").and_then(Value::as_str) {
        out.message(22, |out| out.string(1, ty));
    }
    if let Some(Value::Object(items)) = get("items") {
        out.message(23, |out| out.message(1, |out| schema(out, items)));
    }
    for clause in list(get("allOf")) {
        out.nested(24, Some(clause), schema);
    }
    out.nested(25, get("properties"), |out, properties| {
        out.named(1, properties, schema);
    });
    out.nested(29, get("externalDocs"), |out, docs| {
        out.text(1, docs.get("description"));
        out.text(2, docs.get("url"));
    });
    out.any(30, get("example"));
    out.extensions(31, schema_of);
}

fn list(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    value.and_then(Value::as_array).into_iter().flatten()
}

/// A message under construction. As in proto3, zero values are omitted.
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.0.push(value.to_le_bytes()[0]);
    }

    fn varint_field(&mut self, number: u64, value: u64) {
        self.varint(number << 3);
        self.varint(value);
    }

    fn bytes(&mut self, number: u64, bytes: &[u8]) {
        self.varint(number << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn string(&mut self, number: u64, text: &str) {
        self.bytes(number, text.as_bytes());
    }

    /// Writes a nested message, also if it is empty.
    fn message(&mut self, number: u64, write: impl FnOnce(&mut Self)) {
        self.varint(number << 3 | 2);
        let start = self.0.len();
        write(self);
        let length = self.0.len() - start;
        let mut prefix = Self(Vec::with_capacity(5));
        prefix.varint(length as u64);
        self.0.splice(start..start, prefix.0);
    }

    /// Writes the message of an object, if present.
    fn nested(
        &mut self,
        number: u64,
        value: Option<&Value>,
        write: impl FnOnce(&mut Self, &Map<String, Value>),
    ) {
        if let Some(Value::Object(value)) = value {
            self.message(number, |out| write(out, value));
        }
    }

    /// Writes a map as pairs of name and message.
    fn named(
        &mut self,
        number: u64,
        map: &Map<String, Value>,
        write: impl Fn(&mut Self, &Map<String, Value>),
    ) {
        for (name, value) in map {
            self.message(number, |out| {
                out.string(1, name);
                out.nested(2, Some(value), &write);
            });
        }
    }

    fn text(&mut self, number: u64, value: Option<&Value>) {
        if let Some(text) = value.and_then(Value::as_str).filter(|text| !text.is_empty()) {
            self.string(number, text);
        }
    }

    fn strings(&mut self, number: u64, value: Option<&Value>) {
        for text in list(value).filter_map(Value::as_str) {
            self.string(number, text);
        }
    }

    fn flag(&mut self, number: u64, value: Option<&Value>) {
        if value == Some(&Value::Bool(true)) {
            self.varint_field(number, 1);
        }
    }

    fn integer(&mut self, number: u64, value: Option<&Value>) {
        if let Some(value) = value.and_then(Value::as_i64).filter(|value| *value != 0) {
            self.varint_field(number, value.cast_unsigned());
        }
    }

    fn double(&mut self, number: u64, value: Option<&Value>) {
        if let Some(value) = value.and_then(Value::as_f64).filter(|value| *value != 0.0) {
            self.varint(number << 3 | 1);
            self.0.extend_from_slice(&value.to_le_bytes());
        }
    }

    fn any(&mut self, number: u64, value: Option<&Value>) {
        if let Some(value) = value {
            self.message(number, |out| out.yaml(value));
        }
    }

    fn yaml(&mut self, value: &Value) {
        self.string(2, &format!("{value}\n"));
    }

    /// Writes every `x-...` extension as a named value.
    fn extensions(&mut self, number: u64, map: &Map<String, Value>) {
        for (name, value) in map.iter().filter(|(name, _)| name.starts_with("x-")) {
            self.message(number, |out| {
                out.string(1, name);
                out.any(2, Some(value));
            });
        }
    }
}
