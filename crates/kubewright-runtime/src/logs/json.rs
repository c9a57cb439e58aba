//! A line of JSON, with the keys of zap's production encoder.
//!
//! The object is flat and has no duplicate keys, which JSON readers handle differently.

use std::borrow::Cow;

use super::fields::Value;
use super::lines::Line;

pub(super) fn encode(line: &Line<'_>) -> Vec<u8> {
    let mut object = Object::default();
    object.text("level".into(), &line.metadata.level().as_str().to_ascii_lowercase());
    object.text("ts".into(), line.time);
    object.text("logger".into(), line.metadata.target());
    object.text("msg".into(), line.fields.message());
    for (name, value) in line.fields.iter() {
        object.value(spelled(name), value);
    }
    for (name, value) in line.span_fields() {
        match (name, value) {
            ("object", Value::Text(key)) => match key.split_once('/') {
                Some((namespace, name)) => {
                    object.text("namespace".into(), namespace);
                    object.text("name".into(), name);
                }
                None => object.text("name".into(), key),
            },
            _ => object.value(spelled(name), value),
        }
    }
    object.end()
}

/// The field name in controller-runtime.
fn spelled(name: &'static str) -> &'static str {
    match name {
        "controller_group" => "controllerGroup",
        "controller_kind" => "controllerKind",
        "reconcile_id" => "reconcileID",
        "request_id" => "requestID",
        "webhook_group" => "webhookGroup",
        "webhook_kind" => "webhookKind",
        "webhook_version" => "webhookVersion",
        _ => name,
    }
}

/// A JSON object being written. The first value of a key wins.
#[derive(Default)]
struct Object {
    bytes: Vec<u8>,
    keys: Vec<Cow<'static, str>>,
}

impl Object {
    fn value(&mut self, name: &'static str, value: &Value) {
        let name = match name {
            "level" | "ts" | "logger" | "msg" => format!("field.{name}").into(),
            _ => name.into(),
        };
        match value {
            Value::Text(text) => self.text(name, text),
            Value::Literal(literal) => {
                if self.key(name) {
                    self.bytes.extend_from_slice(literal.as_bytes());
                }
            }
        }
    }

    fn text(&mut self, name: Cow<'static, str>, text: &str) {
        if self.key(name) {
            self.string(text);
        }
    }

    /// Writes the key and returns true, unless the key exists.
    fn key(&mut self, name: Cow<'static, str>) -> bool {
        if self.keys.contains(&name) {
            return false;
        }
        self.bytes.push(if self.keys.is_empty() { b'{' } else { b',' });
        self.string(&name);
        self.bytes.push(b':');
        self.keys.push(name);
        true
    }

    fn string(&mut self, text: &str) {
        // Serializing a string to memory cannot fail.
        let _ = serde_json::to_writer(&mut self.bytes, text);
    }

    fn end(mut self) -> Vec<u8> {
        self.bytes.push(b'}');
        self.bytes
    }
}
