//! Encodes JSON as protobuf, byte for byte as Go's generated code does.
//!
//! Go writes every field except nil pointers, lists, maps and byte slices, even if it is zero. Fields come in the order
//! of their numbers, and the entries of maps in the order of their keys. The object is in the normal form of its
//! type; a value of another type is written as the zero value.

use serde_json::{Map, Value};

use super::numbers::{Either, Member, SCHEMA, is_wrapped, members};
use super::{MAGIC, Message, TAIL};
use crate::facts::{self, Field, FieldType, Type};
use kubewright_apimachinery::json;
use kubewright_apimachinery::meta::bytes as base64;
use kubewright_apimachinery::time;

/// An object as a body. None if its kind has no protobuf form.
pub fn encode(object: &Value) -> Option<Vec<u8>> {
    let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    Some(envelope(api_version, kind, &encode_member(api_version, kind, object)?))
}

/// An object of a kind as field 2 of the message around it. Both a body and a list have their objects there. None if
/// the kind has no protobuf form.
pub fn encode_member(api_version: &str, kind: &str, object: &Value) -> Option<Vec<u8>> {
    let message = Message::of(api_version, kind)?;
    let mut out = Writer(Vec::new());
    out.message(2, |out| match message {
        Message::Typed(ty) => out.object(ty.name, ty, object.as_object()),
        Message::Metadata => out.metadata("meta.v1.ObjectMeta", object),
        Message::MetadataList => {
            out.metadata("meta.v1.ListMeta", object);
            for item in object.get("items").and_then(Value::as_array).into_iter().flatten() {
                out.message(2, |out| out.metadata("meta.v1.ObjectMeta", item));
            }
        }
        Message::Discovery => out.discovery(object),
    });
    Some(out.0)
}

/// A body around an object that [`encode_member`] wrote.
pub fn envelope(api_version: &str, kind: &str, member: &[u8]) -> Vec<u8> {
    let mut out = Writer(Vec::with_capacity(MAGIC.len() + 64 + member.len()));
    out.0.extend_from_slice(MAGIC);
    out.type_meta(api_version, kind);
    out.0.extend_from_slice(member);
    out.0.extend_from_slice(TAIL);
    out.0
}

/// The start of a body with a list: everything before its items, which take `items` bytes. [`TAIL`] ends the body.
pub fn list_head(api_version: &str, kind: &str, metadata: &Value, items: usize) -> Vec<u8> {
    let mut meta = Writer(Vec::new());
    meta.metadata("meta.v1.ListMeta", metadata);
    let mut out = Writer(MAGIC.to_vec());
    out.type_meta(api_version, kind);
    out.tag(2, 2);
    out.varint((meta.0.len() + items) as u64);
    out.0.extend_from_slice(&meta.0);
    out.0
}

/// One event of a watch with its object as a body, and its length in front as four bytes.
pub fn watch_frame(event: &str, body: &[u8]) -> Vec<u8> {
    let mut out = Writer(vec![0; 4]);
    out.text(1, event);
    out.message(2, |out| out.bytes(1, body));
    let length = u32::try_from(out.0.len() - 4).unwrap_or(u32::MAX);
    out.0[..4].copy_from_slice(&length.to_be_bytes());
    out.0
}

struct Writer(Vec<u8>);

impl Writer {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push((value & 0x7f) as u8);
    }

    fn tag(&mut self, number: u32, wire: u8) {
        self.varint(u64::from(number) << 3 | u64::from(wire));
    }

    fn integer(&mut self, number: u32, value: i64) {
        self.tag(number, 0);
        self.varint(value.cast_unsigned());
    }

    fn bytes(&mut self, number: u32, bytes: &[u8]) {
        self.tag(number, 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn text(&mut self, number: u32, text: &str) {
        self.bytes(number, text.as_bytes());
    }

    /// A message in a field. Most are short: one byte is kept for the length, and a longer length moves the message.
    fn message(&mut self, number: u32, write: impl FnOnce(&mut Self)) {
        self.tag(number, 2);
        let at = self.0.len();
        self.0.push(0);
        write(self);
        let length = self.0.len() - at - 1;
        let mut prefix = Self(Vec::with_capacity(5));
        prefix.varint(length as u64);
        self.0.splice(at..=at, prefix.0);
    }

    /// Kind and version, in the envelope.
    fn type_meta(&mut self, api_version: &str, kind: &str) {
        self.message(1, |out| {
            out.text(1, api_version);
            out.text(2, kind);
        });
    }

    /// `metadata` of an object, as field 1.
    fn metadata(&mut self, ty: &str, object: &Value) {
        let Some(ty) = facts::type_named(ty) else { return };
        self.message(1, |out| out.object(ty.name, ty, object.get("metadata").and_then(Value::as_object)));
    }

    /// The fields of a message. `name` differs from the type where JSON shows an embedded message flat.
    fn object(&mut self, name: &str, ty: &'static Type, object: Option<&Map<String, Value>>) {
        for (number, member) in members(name) {
            match member {
                Member::Inline(embedded) => {
                    self.message(*number, |out| out.object(embedded, ty, object));
                }
                Member::Field(field) => {
                    let Some(facts) = ty.field(field) else { continue };
                    let value = object.and_then(|object| object.get(*field)).unwrap_or(&Value::Null);
                    if is_wrapped(name, field) {
                        self.message(*number, |out| out.field(1, facts, value));
                    } else {
                        self.field(*number, facts, value);
                    }
                }
            }
        }
    }

    fn field(&mut self, number: u32, field: &'static Field, value: &Value) {
        match (&field.ty, value) {
            (_, Value::Null) if field.pointer => {}
            (FieldType::List(of), Value::Array(items)) => {
                for item in items {
                    self.value(number, of, item);
                }
            }
            (FieldType::Map(of), Value::Object(entries)) => {
                let mut entries: Vec<(&String, &Value)> = entries.iter().collect();
                entries.sort_by_key(|(key, _)| *key);
                for (key, entry) in entries {
                    self.message(number, |out| {
                        out.text(1, key);
                        match (&**of, entry) {
                            (FieldType::List(of), list) => out.message(2, |out| {
                                for item in list.as_array().into_iter().flatten() {
                                    out.value(1, of, item);
                                }
                            }),
                            (of, entry) => out.value(2, of, entry),
                        }
                    });
                }
            }
            (FieldType::Bytes, Value::Null) | (FieldType::List(_) | FieldType::Map(_), _) => {}
            (ty, value) => self.value(number, ty, value),
        }
    }

    /// A value other than a list or a map.
    fn value(&mut self, number: u32, ty: &'static FieldType, value: &Value) {
        match ty {
            FieldType::String => self.text(number, value.as_str().unwrap_or_default()),
            FieldType::Bool => self.integer(number, i64::from(value.as_bool().unwrap_or_default())),
            FieldType::Int32 | FieldType::Int64 => self.integer(number, value.as_i64().unwrap_or_default()),
            FieldType::Number => {
                self.tag(number, 1);
                self.0.extend_from_slice(&value.as_f64().unwrap_or_default().to_le_bytes());
            }
            FieldType::Bytes => {
                self.bytes(number, &base64::decode(value.as_str().unwrap_or_default()));
            }
            FieldType::Quantity => {
                self.message(number, |out| out.text(1, value.as_str().unwrap_or("0")));
            }
            FieldType::IntOrString => self.message(number, |out| {
                out.integer(1, i64::from(value.is_string()));
                out.integer(2, value.as_i64().unwrap_or_default());
                out.text(3, value.as_str().unwrap_or_default());
            }),
            FieldType::Time | FieldType::MicroTime => self.message(number, |out| out.time(ty, value)),
            FieldType::Raw | FieldType::Json | FieldType::FieldsV1 => self.message(number, |out| {
                if !value.is_null() {
                    out.bytes(1, &json::to_vec(value));
                }
            }),
            FieldType::Object(of) => self.message(number, |out| match Either::named(of.name()) {
                Some(either) => out.either(either, value),
                None => out.object(of.name(), of.get(), value.as_object()),
            }),
            // Neither a list nor a map is in a list, and lists in maps are written where the map is.
            FieldType::List(_) | FieldType::Map(_) => {}
        }
    }

    /// Seconds and nanoseconds; nothing for Go's zero time.
    fn time(&mut self, ty: &FieldType, value: &Value) {
        let Some(text) = value.as_str() else { return };
        let micros = match ty {
            FieldType::MicroTime => time::parse_rfc3339_micros(text),
            _ => time::parse_rfc3339(text).map(|seconds| seconds.saturating_mul(1_000_000)),
        };
        let Some(micros) = micros else { return };
        self.integer(1, micros.div_euclid(1_000_000));
        self.integer(2, micros.rem_euclid(1_000_000) * 1_000);
    }

    fn either(&mut self, either: Either, value: &Value) {
        let Some(schema) = facts::type_named(SCHEMA) else { return };
        match (either, value) {
            (Either::Bool, value) => {
                self.integer(1, i64::from(value.as_bool().unwrap_or(value.is_object())));
                if let Value::Object(object) = value {
                    self.message(2, |out| out.object(schema.name, schema, Some(object)));
                }
            }
            (_, Value::Object(object)) => {
                self.message(1, |out| out.object(schema.name, schema, Some(object)));
            }
            (Either::Array, Value::Array(items)) => {
                for item in items {
                    self.message(2, |out| out.object(schema.name, schema, item.as_object()));
                }
            }
            (Either::Strings, Value::Array(items)) => {
                for item in items {
                    self.text(2, item.as_str().unwrap_or_default());
                }
            }
            _ => {}
        }
    }

    /// `APIGroupDiscoveryList` of `apidiscovery.k8s.io/v2`, which the type table does not have.
    fn discovery(&mut self, list: &Value) {
        self.metadata("meta.v1.ListMeta", list);
        each(list, "items", |group| {
            self.message(2, |out| {
                out.metadata("meta.v1.ObjectMeta", group);
                each(group, "versions", |version| {
                    out.message(2, |out| {
                        out.string_field(1, version, "version");
                        each(version, "resources", |resource| {
                            out.message(2, |out| out.discovered_resource(resource));
                        });
                        out.string_field(3, version, "freshness");
                    });
                });
            });
        });
    }

    fn discovered_resource(&mut self, resource: &Value) {
        self.string_field(1, resource, "resource");
        self.response_kind(2, resource);
        self.string_field(3, resource, "scope");
        self.string_field(4, resource, "singularResource");
        for (number, name) in [(5, "verbs"), (6, "shortNames"), (7, "categories")] {
            each(resource, name, |word| self.text(number, word.as_str().unwrap_or_default()));
        }
        each(resource, "subresources", |sub| {
            self.message(8, |out| {
                out.string_field(1, sub, "subresource");
                out.response_kind(2, sub);
                each(sub, "verbs", |word| out.text(4, word.as_str().unwrap_or_default()));
            });
        });
    }

    fn response_kind(&mut self, number: u32, of: &Value) {
        let Some(kind) = of.get("responseKind").filter(|kind| kind.is_object()) else { return };
        self.message(number, |out| {
            for (number, name) in [(1, "group"), (2, "version"), (3, "kind")] {
                out.string_field(number, kind, name);
            }
        });
    }

    fn string_field(&mut self, number: u32, of: &Value, name: &str) {
        self.text(number, of.get(name).and_then(Value::as_str).unwrap_or_default());
    }
}

fn each(of: &Value, name: &str, write: impl FnMut(&Value)) {
    of.get(name).and_then(Value::as_array).into_iter().flatten().for_each(write);
}
