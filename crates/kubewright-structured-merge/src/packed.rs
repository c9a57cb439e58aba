//! Packed objects: each `fieldsV1` in managedFields is a JSON string instead of an object tree.
//!
//! Field sets are often the largest part of an object, and only this crate reads them. So the server keeps
//! them in serialized form, like upstream's raw bytes. Packed objects must not leave the server: [`write_to`]
//! writes the original JSON, and [`unpack`] restores the tree.

use std::cell::RefCell;
use std::collections::HashMap;

use serde_json::Value;

use super::managed::ManagedFields;
use super::path::ElementError;
use super::set::Set;
use kubewright_apimachinery::json::{self, ParseError, ParseOptions};
use kubewright_apimachinery::object::Fields as _;

/// Path of the field sets.
const SETS: &[&str] = &["metadata", "managedFields", "[]", "fieldsV1"];

/// Size of the cache of decoded sets. Similar objects usually share their managedFields.
const REMEMBERED: usize = 32;
/// Maximum length of a cached text in bytes.
const LONGEST: usize = 16 << 10;

/// The encoding of managedFields in an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owners {
    /// Plain JSON, as clients see it.
    Json,
    /// Packed, both in the live object and in the result.
    Packed,
}

impl Owners {
    pub(crate) fn read(self, object: &Value) -> Result<ManagedFields, super::ManagedFieldsError> {
        let entries = object.at("metadata.managedFields");
        match self {
            Self::Json => ManagedFields::decode(entries),
            Self::Packed => ManagedFields::decode_packed(entries),
        }
    }

    pub(crate) fn store(self, managed: &ManagedFields, object: &mut Value) {
        match self {
            Self::Json => managed.store(object),
            Self::Packed => managed.store_packed(object),
        }
    }
}

/// Parses a stored object and packs it.
pub fn parse(json: &[u8]) -> Result<Value, ParseError> {
    let options = ParseOptions { text_at: SETS, ..ParseOptions::default() };
    json::parse(json, options).map(|parsed| parsed.value)
}

/// Writes an object, packed or not, as plain JSON.
pub fn write_to(out: &mut Vec<u8>, object: &Value) {
    json::write_with_text(out, object, SETS);
}

/// Replaces the packed texts by JSON trees.
pub fn unpack(object: &mut Value) {
    for entry in object.list_mut("metadata.managedFields").into_iter().flatten() {
        if let Some(Value::String(text)) = entry.get("fieldsV1")
            && let Some(fields) = read(text)
        {
            entry["fieldsV1"] = fields;
        }
    }
}

/// Whether the managedFields of an object nest deeper than `levels`, counted as plain JSON.
pub fn is_deeper_than(object: &Value, levels: usize) -> bool {
    let entries = object.at("metadata.managedFields");
    json::is_deeper_than(entries, levels)
        || entries.as_array().into_iter().flatten().any(|entry| match entry.get("fieldsV1") {
            // The entry list and object add levels. Texts with few braces need no exact count.
            Some(Value::String(text)) => braces(text) + 2 > levels && depth(text) + 2 > levels,
            _ => false,
        })
}

fn braces(text: &str) -> usize {
    // Chunks of up to 255 bytes let the compiler vectorize the count.
    let count = |part: &[u8]| part.iter().map(|byte| u8::from(*byte == b'{')).sum::<u8>();
    text.as_bytes().chunks(255).map(|part| usize::from(count(part))).sum()
}

fn read(text: &str) -> Option<Value> {
    let options = ParseOptions { max_depth: usize::MAX, ..ParseOptions::default() };
    json::parse(text.as_bytes(), options).ok().map(|parsed| parsed.value)
}

/// The nesting depth of a JSON text.
fn depth(text: &str) -> usize {
    let (mut open, mut deepest) = (0_usize, 0);
    let (mut in_string, mut escaped) = (false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => in_string = !in_string,
            b'{' if !in_string => {
                open += 1;
                deepest = deepest.max(open);
            }
            b'}' if !in_string => open = open.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

thread_local! {
    /// Cache of decoded sets, keyed by their canonical text.
    static SETS_BY_TEXT: RefCell<HashMap<Box<str>, Set>> = RefCell::default();
}

pub(super) fn text(set: &Set) -> Value {
    // Most updates do not change ownership.
    let known = SETS_BY_TEXT.with_borrow(|sets| {
        sets.iter().find(|(_, known)| *known == set).map(|(text, _)| Value::from(&**text))
    });
    known.unwrap_or_else(|| written(set, |text| text.into()))
}

fn written<T>(set: &Set, read: impl FnOnce(&str) -> T) -> T {
    thread_local! {
        /// Scratch buffer, so that the kept text has no excess capacity.
        static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    SCRATCH.with_borrow_mut(|scratch| {
        scratch.clear();
        set.write_text(scratch);
        read(str::from_utf8(scratch).unwrap_or_default())
    })
}

pub(super) fn set(fields: &Value) -> Result<Set, ElementError> {
    let Value::String(text) = fields else {
        return Set::decode(fields);
    };
    if let Some(set) = SETS_BY_TEXT.with_borrow(|sets| sets.get(text.as_str()).cloned()) {
        return Ok(set);
    }
    let set = Set::decode(&read(text).unwrap_or_default())?;
    if text.len() <= LONGEST && written(&set, |written| written == text) {
        SETS_BY_TEXT.with_borrow_mut(|sets| {
            if sets.len() == REMEMBERED {
                sets.clear();
            }
            sets.insert(text.as_str().into(), set.clone());
        });
    }
    Ok(set)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object() -> Value {
        let fields = json!({
            "f:metadata": {"f:labels": {".": {}, "f:a<b": {}}},
            "f:spec": {
                "f:ports": {r#"k:{"port":80}"#: {".": {}, "f:name": {}}, r#"k:{"port":8080}"#: {"f:name": {}}},
                "f:modes": {r#"v:"x\"y""#: {}, "i:0": {}},
            },
        });
        let entry = json!({"apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields, "manager": "m", "operation": "Update"});
        json!({"metadata": {"managedFields": [entry], "name": "a"}, "spec": {"fieldsV1": {"a": 1}}})
    }

    #[test]
    fn packed_objects_round_trip() {
        let text = json::to_string(&object());
        let mut packed = parse(text.as_bytes()).unwrap();
        assert!(packed["metadata"]["managedFields"][0]["fieldsV1"].is_string());
        for value in [&packed, &object()] {
            let mut written = Vec::new();
            write_to(&mut written, value);
            assert_eq!(String::from_utf8(written).unwrap(), text);
        }
        unpack(&mut packed);
        assert_eq!(packed, object());
    }

    #[test]
    fn packed_and_plain_objects_have_the_same_managed_fields() {
        let text = json::to_string(&object());
        let packed = parse(text.as_bytes()).unwrap();
        let owners = Owners::Packed.read(&packed).unwrap();
        assert_eq!(owners, Owners::Json.read(&object()).unwrap());
        let (mut again, mut as_json) = (packed.clone(), object());
        Owners::Packed.store(&owners, &mut again);
        Owners::Json.store(&owners, &mut as_json);
        assert_eq!(again, packed, "the packed text of a set equals its JSON");
        assert_eq!(as_json, object());
    }

    #[test]
    fn a_string_sent_by_a_client_is_not_a_packed_set() {
        let sent = json!({"metadata": {"managedFields": [{
            "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": r#"{"f:data":{}}"#, "manager": "m",
            "operation": "Update",
        }]}});
        assert!(Owners::Json.read(&sent).unwrap().entries()[0].fields.is_empty());
    }

    #[test]
    fn a_packed_object_has_the_depth_of_its_json() {
        let mut fields = json!({});
        for _ in 0..20 {
            fields = json!({"f:a": fields});
        }
        let object = json!({"metadata": {"managedFields": [{"fieldsV1": fields}]}});
        let packed = parse(json::to_string(&object).as_bytes()).unwrap();
        for levels in [10, 22, 23, 24, 300] {
            let expected = json::is_deeper_than(object.at("metadata.managedFields"), levels);
            assert_eq!(is_deeper_than(&packed, levels), expected, "{levels}");
            assert_eq!(is_deeper_than(&object, levels), expected, "{levels}");
        }
    }
}
