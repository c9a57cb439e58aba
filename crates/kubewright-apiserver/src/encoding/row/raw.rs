//! Parts of a stored object as JSON, without decoding it.
//!
//! Stored JSON is valid and compact: the server has written it.

use kubewright_apimachinery::json::{self, ParseOptions};
use serde_json::Value;

/// A stored object, split into its fields.
pub(super) struct Raw<'a> {
    pub(super) metadata: &'a [u8],
    /// The other fields, with their names.
    others: Vec<&'a [u8]>,
}

impl<'a> Raw<'a> {
    /// `None` if the object has no metadata.
    pub(super) fn of(object: &'a [u8]) -> Option<Self> {
        let (mut metadata, mut others) = (None, Vec::with_capacity(8));
        for field in Fields::of(object)? {
            let (name, value, whole) = field?;
            if name == b"metadata" {
                metadata = Some(value);
            } else {
                others.push(whole);
            }
        }
        Some(Self { metadata: metadata?, others })
    }

    /// The decoded object without managedFields.
    pub(super) fn without_managed_fields(&self) -> Option<Value> {
        let mut text = Vec::with_capacity(512);
        text.extend_from_slice(b"{\"metadata\":{");
        for field in Fields::of(self.metadata)? {
            let (name, _, whole) = field?;
            if name != b"managedFields" {
                text.extend_from_slice(whole);
                text.push(b',');
            }
        }
        // Without the last comma.
        text.pop_if(|last| *last == b',');
        text.push(b'}');
        for field in &self.others {
            text.push(b',');
            text.extend_from_slice(field);
        }
        text.push(b'}');
        json::parse(&text, ParseOptions::default()).map(|parsed| parsed.value).ok()
    }
}

/// The fields of an object: the name, the value, and both with the colon. `None` for JSON that is not compact.
struct Fields<'a> {
    text: &'a [u8],
    at: usize,
}

type Field<'a> = (&'a [u8], &'a [u8], &'a [u8]);

impl<'a> Fields<'a> {
    fn of(text: &'a [u8]) -> Option<Self> {
        (text.first() == Some(&b'{')).then_some(Self { text, at: 1 })
    }

    fn field(&mut self) -> Option<Field<'a>> {
        let start = self.at;
        let name = string_end(self.text, start)?;
        let value = (self.text.get(name) == Some(&b':')).then_some(name + 1)?;
        let end = value_end(self.text, value)?;
        self.at = match self.text.get(end)? {
            b',' => end + 1,
            b'}' => end,
            _ => return None,
        };
        Some((&self.text[start + 1..name - 1], &self.text[value..end], &self.text[start..end]))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Option<Field<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.text.get(self.at) == Some(&b'}') {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            // The object ends with the error.
            (self.text, self.at) = (b"}", 0);
        }
        Some(field)
    }
}

/// The end of the string that starts at `at`.
fn string_end(text: &[u8], at: usize) -> Option<usize> {
    if text.get(at) != Some(&b'"') {
        return None;
    }
    let mut at = at + 1;
    loop {
        match text.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// The end of the value that starts at `at`.
fn value_end(text: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    loop {
        match text.get(at)? {
            b'"' => at = string_end(text, at)?,
            b'{' | b'[' => {
                depth += 1;
                at += 1;
                continue;
            }
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                at += 1;
            }
            b',' | b':' => {
                at += 1;
                continue;
            }
            // A number or a literal.
            _ => {
                while !matches!(text.get(at)?, b',' | b'}' | b']') {
                    at += 1;
                }
            }
        }
        if depth == 0 {
            return Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".{0,6}".prop_map(Value::from),
            r#"["\\{}\[\],:]{0,6}"#.prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(".{0,4}", inner, 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn only_managed_fields_are_removed(metadata in value(), spec in value(), managed in value()) {
            let mut object = json!({"metadata": {"labels": metadata}, "spec": spec, "z": 1});
            object["metadata"]["managedFields"] = managed;
            let text = json::to_vec(&object);
            let raw = Raw::of(&text).unwrap();
            prop_assert_eq!(raw.metadata, json::to_vec(&object["metadata"]));
            let mut expected = json::parse(&text, ParseOptions::default()).unwrap().value;
            expected["metadata"].as_object_mut().unwrap().remove("managedFields");
            prop_assert_eq!(raw.without_managed_fields().unwrap(), expected);
        }
    }

    #[test]
    fn an_object_with_managed_fields_only_has_empty_metadata() {
        let raw = Raw::of(br#"{"metadata":{"managedFields":[]}}"#).unwrap();
        assert_eq!(raw.without_managed_fields().unwrap(), json!({"metadata": {}}));
    }

    #[test]
    fn malformed_json_is_not_split() {
        for text in ["", "[]", "{", r#"{"a""#, r#"{"a":"#, r#"{"metadata":1"#, r#"{"metadata": 1 }x"#] {
            assert!(
                Raw::of(text.as_bytes()).is_none_or(|raw| raw.without_managed_fields().is_none()),
                "{text}"
            );
        }
    }
}
