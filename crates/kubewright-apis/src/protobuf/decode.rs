//! Decodes protobuf into JSON.
//!
//! The type table has the types of fields; a message only has their numbers. Unknown numbers are skipped. The result is
//! not normalised: it has the zero values that Go writes.

use serde_json::{Map, Value};

use super::numbers::{Either, Member, SCHEMA, is_wrapped, members};
use super::reader::{Leaf, Reader};
use super::{MAGIC, MAX_DEPTH, Message, ProtobufError, Result};
use crate::facts::{self, FieldType, Type};
use kubewright_apimachinery::decode::normalise;
use kubewright_apimachinery::json::{self, ParseOptions};
use kubewright_apimachinery::meta::bytes as base64;
use kubewright_apimachinery::time;

/// The object in a body, with `apiVersion` and `kind`.
pub fn decode(bytes: &[u8]) -> Result<Value> {
    let mut envelope = Reader(bytes.strip_prefix(MAGIC).ok_or(ProtobufError::NoMagic)?);
    let (mut api_version, mut kind, mut raw): (String, String, &[u8]) = Default::default();
    while let Some((number, wire)) = envelope.tag()? {
        match (number, wire) {
            (1, 2) => {
                let mut meta = Reader(envelope.bytes()?);
                while let Some((number, wire)) = meta.tag()? {
                    match (number, wire) {
                        (1, 2) => api_version = meta.text()?,
                        (2, 2) => kind = meta.text()?,
                        _ => meta.skip(wire)?,
                    }
                }
            }
            (2, 2) => raw = envelope.bytes()?,
            _ => envelope.skip(wire)?,
        }
    }
    let mut object = match Message::of(&api_version, &kind) {
        Some(Message::Typed(ty)) => read(ty, raw, 0)?,
        Some(Message::Metadata) => partial(raw, &["meta.v1.ObjectMeta"])?,
        Some(Message::MetadataList) => partial(raw, &["meta.v1.ListMeta", "meta.v1.ObjectMeta"])?,
        Some(Message::Discovery) | None => return Err(ProtobufError::UnknownKind { api_version, kind }),
    };
    object.insert("apiVersion".to_owned(), api_version.into());
    object.insert("kind".to_owned(), kind.into());
    Ok(Value::Object(object))
}

/// A PartialObjectMetadata, or a list of them: the type of `metadata`, then that of the items' metadata.
fn partial(raw: &[u8], types: &[&str]) -> Result<Map<String, Value>> {
    let mut object = Map::new();
    let mut items = Vec::new();
    let mut reader = Reader(raw);
    while let Some((number, wire)) = reader.tag()? {
        match (number, wire, types) {
            (1, 2, [ty, ..]) => {
                let metadata = named(ty, reader.bytes()?, 1)?;
                object.insert("metadata".to_owned(), metadata);
            }
            (2, 2, [_, item]) => items.push(Value::Object(partial(reader.bytes()?, &[item])?)),
            _ => reader.skip(wire)?,
        }
    }
    if types.len() > 1 {
        object.insert("items".to_owned(), Value::Array(items));
    }
    Ok(object)
}

/// A message of the type called `name`.
fn named(name: &str, bytes: &[u8], depth: usize) -> Result<Value> {
    let Some(ty) = facts::type_named(name) else { return Ok(Value::Null) };
    Ok(Value::Object(read(ty, bytes, depth)?))
}

fn read(ty: &'static Type, bytes: &[u8], depth: usize) -> Result<Map<String, Value>> {
    let mut object = Map::new();
    message(ty.name, ty, bytes, &mut object, depth)?;
    Ok(object)
}

/// Reads a message into the object that JSON shows it as.
fn message(
    name: &str,
    ty: &'static Type,
    bytes: &[u8],
    object: &mut Map<String, Value>,
    depth: usize,
) -> Result<()> {
    if depth > MAX_DEPTH {
        return Err(ProtobufError::Depth);
    }
    let members = members(name);
    let mut reader = Reader(bytes);
    while let Some((number, wire)) = reader.tag()? {
        match members.iter().find(|(own, _)| *own == number) {
            Some((_, Member::Inline(embedded))) if wire == 2 => {
                message(embedded, ty, reader.bytes()?, object, depth + 1)?;
            }
            Some((_, Member::Field(field))) => match ty.field(field) {
                Some(facts) => {
                    let before = object.remove(*field);
                    let value = if is_wrapped(name, field) && wire == 2 {
                        list_message(field, &facts.ty, reader.bytes()?, before, depth)?
                    } else {
                        Some(value(field, &facts.ty, wire, &mut reader, before, depth)?)
                    };
                    object.insert((*field).to_owned(), value.unwrap_or_default());
                }
                None => reader.skip(wire)?,
            },
            _ => reader.skip(wire)?,
        }
    }
    Ok(())
}

/// Reads one occurrence of a field. `before` is the value of earlier occurrences.
fn value(
    field: &'static str,
    ty: &'static FieldType,
    wire: u8,
    reader: &mut Reader<'_>,
    before: Option<Value>,
    depth: usize,
) -> Result<Value> {
    let wrong = || ProtobufError::WireType { wire, field };
    match (ty, wire) {
        (FieldType::List(of), _) => {
            let mut items = match before {
                Some(Value::Array(items)) => items,
                _ => Vec::new(),
            };
            let packed = matches!(**of, FieldType::Int32 | FieldType::Int64 | FieldType::Bool) && wire == 2;
            if packed {
                let mut inner = Reader(reader.bytes()?);
                while !inner.0.is_empty() {
                    items.push(value(field, of, 0, &mut inner, None, depth)?);
                }
            } else {
                items.push(value(field, of, wire, reader, None, depth + 1)?);
            }
            Ok(Value::Array(items))
        }
        (FieldType::Map(of), 2) => {
            let mut entries = match before {
                Some(Value::Object(entries)) => entries,
                _ => Map::new(),
            };
            let (key, entry) = map_entry(field, of, reader.bytes()?, depth)?;
            entries.insert(key, entry);
            Ok(Value::Object(entries))
        }
        (FieldType::Object(of), 2) => {
            let bytes = reader.bytes()?;
            if let Some(either) = Either::named(of.name()) {
                return either_of(either, field, bytes, depth + 1);
            }
            let mut object = match before {
                Some(Value::Object(object)) => object,
                _ => Map::new(),
            };
            message(of.name(), of.get(), bytes, &mut object, depth + 1)?;
            Ok(Value::Object(object))
        }
        (FieldType::String, 2) => Ok(Value::String(reader.text()?)),
        (FieldType::Bytes, 2) => Ok(Value::String(base64::encode(reader.bytes()?))),
        (FieldType::Bool, 0) => Ok(Value::Bool(reader.varint()? != 0)),
        (FieldType::Int32, 0) => Ok(Value::from(int32(reader.varint()?))),
        (FieldType::Int64, 0) => Ok(Value::from(reader.varint()?.cast_signed())),
        (FieldType::Number, 1) => {
            let bits = u64::from_le_bytes(reader.take(8)?.try_into().map_err(|_| ProtobufError::Truncated)?);
            Ok(number(f64::from_bits(bits)))
        }
        _ if wire == 2 => leaf(ty, reader.bytes()?)?.ok_or_else(wrong),
        _ => Err(wrong()),
    }
}

/// A message that JSON shows as one value.
fn leaf(ty: &FieldType, bytes: &[u8]) -> Result<Option<Value>> {
    let leaf = Leaf::read(bytes)?;
    Ok(Some(match ty {
        FieldType::Quantity => leaf.text(1)?,
        FieldType::IntOrString if leaf.integer(1) == 1 => leaf.text(3)?,
        FieldType::IntOrString => Value::from(int32(leaf.integer(2).cast_unsigned())),
        FieldType::Time | FieldType::MicroTime => {
            let (seconds, nanos) = (leaf.integer(1), i64::from(int32(leaf.integer(2).cast_unsigned())));
            // Go's zero time.
            if seconds == 0 && nanos == 0 {
                return Ok(Some(Value::Null));
            }
            // Years 1 to 9999, as RFC 3339 and JSON have them.
            if !(-62_135_596_800..=253_402_300_799).contains(&seconds) {
                return Err(ProtobufError::Time);
            }
            Value::String(if matches!(ty, FieldType::Time) {
                time::format_rfc3339(seconds)
            } else {
                time::format_rfc3339_micro(seconds * 1_000_000 + nanos.div_euclid(1_000))
            })
        }
        FieldType::Raw | FieldType::Json | FieldType::FieldsV1 => match leaf.raw(1) {
            [] => Value::Null,
            raw => json::parse(raw, ParseOptions::default()).map_err(|_| ProtobufError::Json)?.value,
        },
        _ => return Ok(None),
    }))
}

/// The low half of a varint: Go cuts numbers off that are too large.
fn int32(value: u64) -> i32 {
    let [a, b, c, d, ..] = value.to_le_bytes();
    i32::from_le_bytes([a, b, c, d])
}

/// A float as Go writes it: without a fraction where there is none.
fn number(value: f64) -> Value {
    #[expect(clippy::cast_possible_truncation, reason = "whole, and within the range where floats are exact")]
    if value.fract() == 0.0 && value.abs() < 9_007_199_254_740_992.0 {
        return Value::from(value as i64);
    }
    serde_json::Number::from_f64(value).map_or(Value::Null, Value::Number)
}

/// One entry of a map: its key and its value.
fn map_entry(
    field: &'static str,
    of: &'static FieldType,
    bytes: &[u8],
    depth: usize,
) -> Result<(String, Value)> {
    let mut reader = Reader(bytes);
    let mut key = String::new();
    let mut entry = None;
    while let Some((number, wire)) = reader.tag()? {
        match (number, wire) {
            (1, 2) => key = reader.text()?,
            (2, 2) if matches!(of, FieldType::List(_)) => {
                entry = list_message(field, of, reader.bytes()?, entry, depth)?;
            }
            (2, _) => entry = Some(value(field, of, wire, &mut reader, None, depth + 1)?),
            _ => reader.skip(wire)?,
        }
    }
    Ok((key, entry.unwrap_or_else(|| empty(of))))
}

/// The items of a list that is encoded as its own message.
fn list_message(
    field: &'static str,
    of: &'static FieldType,
    bytes: &[u8],
    mut before: Option<Value>,
    depth: usize,
) -> Result<Option<Value>> {
    let mut list = Reader(bytes);
    while let Some((number, wire)) = list.tag()? {
        if number == 1 {
            before = Some(value(field, of, wire, &mut list, before, depth + 1)?);
        } else {
            list.skip(wire)?;
        }
    }
    Ok(before)
}

/// The value of an entry that has none.
fn empty(of: &FieldType) -> Value {
    match of {
        FieldType::String | FieldType::Bytes => Value::String(String::new()),
        _ => Value::Null,
    }
}

/// A schema in the form that Go would write. Types around it hold any JSON, so that nothing else normalises it.
fn schema_of(bytes: &[u8], depth: usize) -> Result<Value> {
    let Some(ty) = facts::type_named(SCHEMA) else { return Ok(Value::Null) };
    let mut schema = Value::Object(read(ty, bytes, depth)?);
    normalise(ty, &mut schema).map_err(|_| ProtobufError::Json)?;
    Ok(schema)
}

/// A schema or something else, as JSON shows it.
fn either_of(either: Either, field: &'static str, bytes: &[u8], depth: usize) -> Result<Value> {
    let mut reader = Reader(bytes);
    let (mut schema, mut allows, mut list) = (None, false, Vec::new());
    while let Some((number, wire)) = reader.tag()? {
        match (either, number, wire) {
            (Either::Array | Either::Strings, 1, 2) | (Either::Bool, 2, 2) => {
                schema = Some(schema_of(reader.bytes()?, depth)?);
            }
            (Either::Bool, 1, 0) => allows = reader.varint()? != 0,
            (Either::Array, 2, 2) => list.push(schema_of(reader.bytes()?, depth)?),
            (Either::Strings, 2, 2) => list.push(Value::String(reader.text()?)),
            (_, 1 | 2, _) => return Err(ProtobufError::WireType { wire, field }),
            _ => reader.skip(wire)?,
        }
    }
    Ok(match (either, schema) {
        (Either::Bool, None) => Value::Bool(allows),
        (_, Some(schema)) if list.is_empty() => schema,
        (_, None) if list.is_empty() => Value::Null,
        _ => Value::Array(list),
    })
}
