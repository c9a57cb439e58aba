//! Decodes Kubernetes' protobuf encoding into JSON.
//!
//! A body is an envelope (`k8s\0`, then apiVersion, kind and object) around a message. `facts/protobuf.txt`
//! has the field numbers and the type table the types. Unknown fields are skipped. Responses are always JSON,
//! which clients must accept.

use std::sync::{LazyLock, OnceLock};

use serde_json::{Map, Value};

use crate::facts::{self, FieldType, Type};
use kubewright_apimachinery::gvk::split_api_version;
use kubewright_apimachinery::json::{self, ParseOptions};
use kubewright_apimachinery::meta::bytes as base64;
use kubewright_apimachinery::time;

/// The prefix of every body.
const MAGIC: &[u8] = b"k8s\0";
/// The maximum nesting depth, as for JSON.
const MAX_DEPTH: usize = json::MAX_DEPTH;

/// Why a body cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtobufError {
    /// The envelope prefix is missing.
    #[error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")]
    NoMagic,
    /// The message is truncated or malformed.
    #[error("unexpected EOF")]
    Truncated,
    /// The wire type does not match the field.
    #[error("proto: wrong wireType = {wire} for field {field}")]
    WireType {
        /// The wire type found.
        wire: u8,
        /// The JSON name of the field.
        field: &'static str,
    },
    /// A string is not valid UTF-8.
    #[error("string field contains invalid UTF-8")]
    Utf8,
    /// The nesting is too deep.
    #[error("exceeded max depth")]
    Depth,
    /// The kind is not built in.
    #[error("no kind {kind:?} is registered for version {api_version:?}")]
    UnknownKind {
        /// `apiVersion` of the envelope.
        api_version: String,
        /// `kind` of the envelope.
        kind: String,
    },
}

type Result<T> = std::result::Result<T, ProtobufError>;

/// Decodes a body into an object with `apiVersion` and `kind`.
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
    let (group, version) = split_api_version(&api_version);
    let found =
        facts::type_of_kind(group, version, &kind).or_else(|| facts::type_named(&format!("meta.v1.{kind}")));
    let Some(ty) = found else {
        return Err(ProtobufError::UnknownKind { api_version, kind });
    };
    let mut object = Map::new();
    message(ty.name, ty, raw, &mut object, 0)?;
    object.insert("apiVersion".to_owned(), api_version.into());
    object.insert("kind".to_owned(), kind.into());
    Ok(Value::Object(object))
}

/// Decodes a message into its JSON object.
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
                    let value = value(field, &facts.ty, wire, &mut reader, before, depth)?;
                    object.insert((*field).to_owned(), value);
                }
                None => reader.skip(wire)?,
            },
            _ => reader.skip(wire)?,
        }
    }
    Ok(())
}

/// Decodes a value. `before` is the value of earlier occurrences of the field.
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
            let mut object = match before {
                Some(Value::Object(object)) => object,
                _ => Map::new(),
            };
            message(of.name(), of.get(), reader.bytes()?, &mut object, depth + 1)?;
            Ok(Value::Object(object))
        }
        (FieldType::String, 2) => Ok(Value::String(reader.text()?)),
        (FieldType::Bytes, 2) => Ok(Value::String(base64::encode(reader.bytes()?))),
        (FieldType::Bool, 0) => Ok(Value::Bool(reader.varint()? != 0)),
        (FieldType::Int32 | FieldType::Int64, 0) => Ok(Value::from(reader.varint()?.cast_signed())),
        (FieldType::Number, 1) => {
            let bits = u64::from_le_bytes(reader.take(8)?.try_into().map_err(|_| ProtobufError::Truncated)?);
            Ok(serde_json::Number::from_f64(f64::from_bits(bits)).map_or(Value::Null, Value::Number))
        }
        (FieldType::Quantity, 2) => Leaf::read(reader.bytes()?)?.text(1),
        (FieldType::IntOrString, 2) => {
            let leaf = Leaf::read(reader.bytes()?)?;
            if leaf.integer(1) == 1 { leaf.text(3) } else { Ok(Value::from(leaf.integer(2))) }
        }
        (FieldType::Time | FieldType::MicroTime, 2) => {
            let leaf = Leaf::read(reader.bytes()?)?;
            let (seconds, nanos) = (leaf.integer(1), leaf.integer(2));
            // Go's zero time is encoded like this.
            if seconds == 0 && nanos == 0 {
                return Ok(Value::Null);
            }
            Ok(Value::String(if matches!(ty, FieldType::Time) {
                time::format_rfc3339(seconds)
            } else {
                time::format_rfc3339_micro(seconds.saturating_mul(1_000_000).saturating_add(nanos / 1_000))
            }))
        }
        (FieldType::Raw | FieldType::Json | FieldType::FieldsV1, 2) => {
            let raw = Leaf::read(reader.bytes()?)?.raw(1);
            if raw.is_empty() {
                return Ok(Value::Null);
            }
            json::parse(raw, ParseOptions::default())
                .map(|parsed| parsed.value)
                .map_err(|_| ProtobufError::Truncated)
        }
        _ => Err(wrong()),
    }
}

/// Decodes a map entry to key and value. A list in a map is a nested message.
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
                let mut list = Reader(reader.bytes()?);
                while let Some((number, wire)) = list.tag()? {
                    if number == 1 {
                        entry = Some(value(field, of, wire, &mut list, entry, depth + 1)?);
                    } else {
                        list.skip(wire)?;
                    }
                }
            }
            (2, _) => entry = Some(value(field, of, wire, &mut reader, None, depth + 1)?),
            _ => reader.skip(wire)?,
        }
    }
    Ok((key, entry.unwrap_or_else(|| empty(of))))
}

/// The value of a map entry without a value.
fn empty(of: &FieldType) -> Value {
    match of {
        FieldType::String | FieldType::Bytes => Value::String(String::new()),
        _ => Value::Null,
    }
}

/// A small message of numbers and bytes.
struct Leaf<'a>(Vec<(u32, LeafValue<'a>)>);

enum LeafValue<'a> {
    Integer(i64),
    Bytes(&'a [u8]),
}

impl<'a> Leaf<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self> {
        let mut reader = Reader(bytes);
        let mut values = Vec::new();
        while let Some((number, wire)) = reader.tag()? {
            match wire {
                0 => values.push((number, LeafValue::Integer(reader.varint()?.cast_signed()))),
                2 => values.push((number, LeafValue::Bytes(reader.bytes()?))),
                _ => reader.skip(wire)?,
            }
        }
        Ok(Self(values))
    }

    fn integer(&self, number: u32) -> i64 {
        let found = self.0.iter().rev().find(|(own, _)| *own == number);
        if let Some((_, LeafValue::Integer(value))) = found { *value } else { 0 }
    }

    fn raw(&self, number: u32) -> &'a [u8] {
        let found = self.0.iter().rev().find(|(own, _)| *own == number);
        if let Some((_, LeafValue::Bytes(bytes))) = found { bytes } else { &[] }
    }

    fn text(&self, number: u32) -> Result<Value> {
        let text = std::str::from_utf8(self.raw(number)).map_err(|_| ProtobufError::Utf8)?;
        Ok(Value::String(text.to_owned()))
    }
}

/// The remaining bytes of a message.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// The number and wire type of the next field, or `None` at the end.
    fn tag(&mut self) -> Result<Option<(u32, u8)>> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).map_err(|_| ProtobufError::Truncated)?;
        Ok(Some((number, (tag & 7) as u8)))
    }

    fn varint(&mut self) -> Result<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (first, rest) = self.0.split_first().ok_or(ProtobufError::Truncated)?;
            self.0 = rest;
            value |= u64::from(first & 0x7f) << shift;
            if first & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(ProtobufError::Truncated)
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(ProtobufError::Truncated)?;
        self.0 = rest;
        Ok(taken)
    }

    fn bytes(&mut self) -> Result<&'a [u8]> {
        let length = usize::try_from(self.varint()?).map_err(|_| ProtobufError::Truncated)?;
        self.take(length)
    }

    fn text(&mut self) -> Result<String> {
        let bytes = self.bytes()?;
        std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| ProtobufError::Utf8)
    }

    fn skip(&mut self, wire: u8) -> Result<()> {
        match wire {
            0 => self.varint().map(drop),
            1 => self.take(8).map(drop),
            2 => self.bytes().map(drop),
            5 => self.take(4).map(drop),
            _ => Err(ProtobufError::Truncated),
        }
    }
}

/// The meaning of a field number.
enum Member {
    /// A field by its JSON name.
    Field(&'static str),
    /// An embedded message that JSON flattens.
    Inline(&'static str),
}

struct Message {
    name: &'static str,
    body: &'static str,
    members: OnceLock<Vec<(u32, Member)>>,
}

static MESSAGES: LazyLock<Vec<Message>> = LazyLock::new(|| {
    let lines = include_str!("../facts/protobuf.txt").lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| line.split_once(' '))
        .map(|(name, body)| Message { name, body, members: OnceLock::new() })
        .collect()
});

/// The members of a message. Empty if the table does not have it, so that it is skipped.
fn members(name: &str) -> &'static [(u32, Member)] {
    let Ok(at) = MESSAGES.binary_search_by(|message| message.name.cmp(name)) else { return &[] };
    let message = &MESSAGES[at];
    message.members.get_or_init(|| message.body.split(' ').filter_map(member).collect())
}

fn member(word: &'static str) -> Option<(u32, Member)> {
    let (name, number) = word.rsplit_once(':')?;
    let member = match name.strip_prefix('@') {
        Some(embedded) => Member::Inline(embedded),
        None => Member::Field(name),
    };
    Some((number.parse().ok()?, member))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A length-delimited field.
    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        let mut encoded = vec![number << 3 | 2, u8::try_from(bytes.len()).unwrap()];
        encoded.extend_from_slice(bytes);
        encoded
    }

    fn number(number: u8, value: u8) -> Vec<u8> {
        vec![number << 3, value]
    }

    fn body(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
        let meta = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
        [MAGIC, &field(1, &meta), &field(2, raw)].concat()
    }

    #[test]
    fn the_table_is_sorted_and_every_line_is_parsed() {
        assert!(MESSAGES.is_sorted_by(|a, b| a.name < b.name));
        assert!(MESSAGES.iter().all(|message| !members(message.name).is_empty()));
    }

    #[test]
    fn every_field_of_a_served_kind_has_a_number() {
        fn check(ty: &'static Type, seen: &mut Vec<&'static str>, missing: &mut Vec<String>) {
            if seen.contains(&ty.name) || ty.any {
                return;
            }
            seen.push(ty.name);
            let mut known: Vec<&str> = Vec::new();
            let mut open = vec![ty.name];
            while let Some(name) = open.pop() {
                for (_, member) in members(name) {
                    match member {
                        Member::Field(field) => known.push(field),
                        Member::Inline(embedded) => open.push(embedded),
                    }
                }
            }
            for field in &ty.fields {
                if !known.contains(&field.name) && !matches!(field.name, "apiVersion" | "kind") {
                    missing.push(format!("{}.{}", ty.name, field.name));
                }
                if let Some(of) = field.ty.object() {
                    check(of, seen, missing);
                }
            }
        }
        let (mut seen, mut missing) = (Vec::new(), Vec::new());
        for resource in
            facts::resources().iter().filter(|resource| resource.group != "apiregistration.k8s.io")
        {
            check(
                facts::type_of_kind(resource.group, resource.version, resource.kind).unwrap(),
                &mut seen,
                &mut missing,
            );
        }
        assert_eq!(missing, Vec::<String>::new());
    }

    #[test]
    fn a_config_map_is_decoded() {
        let meta = field(1, b"a");
        let entry = [field(1, b"k"), field(2, b"v")].concat();
        let raw = [field(1, &meta), field(2, &entry), number(4, 1)].concat();
        assert_eq!(
            decode(&body("v1", "ConfigMap", &raw)).unwrap(),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}, "immutable": true})
        );
    }

    #[test]
    fn embedded_messages_are_flattened() {
        // Volume { name, VolumeSource { emptyDir {} } }
        let volume = [field(1, b"v"), field(2, &field(2, b""))].concat();
        let raw = field(2, &field(1, &volume));
        let pod = decode(&body("v1", "Pod", &raw)).unwrap();
        assert_eq!(pod["spec"], json!({"volumes": [{"name": "v", "emptyDir": {}}]}));
    }

    #[test]
    fn leaf_messages_are_decoded_to_their_json_form() {
        // ServicePort { port 80, targetPort { type 1, strVal "http" } }
        let port = [number(3, 80), field(4, &[number(1, 1), field(3, b"http")].concat())].concat();
        let service = decode(&body("v1", "Service", &field(2, &field(1, &port)))).unwrap();
        assert_eq!(service["spec"], json!({"ports": [{"port": 80, "targetPort": "http"}]}));
    }

    #[test]
    fn malformed_bytes_are_errors() {
        assert_eq!(decode(b"{}"), Err(ProtobufError::NoMagic));
        let whole = body("v1", "ConfigMap", &field(1, &field(1, b"abc")));
        for end in MAGIC.len() + 1..whole.len() {
            // A message cut between two fields is a shorter message. Any other cut is an error, and none
            // panics.
            let cut = decode(&whole[..end]);
            assert!(cut != decode(&whole), "cut at {end}");
        }
        assert!(matches!(decode(&body("v1", "Nope", b"")), Err(ProtobufError::UnknownKind { .. })));
        let wrong = field(1, &number(1, 7));
        assert!(matches!(
            decode(&body("v1", "ConfigMap", &wrong)),
            Err(ProtobufError::WireType { wire: 0, .. })
        ));
    }
}
