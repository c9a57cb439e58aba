//! Errors of strict field validation, in document order.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::field::quote;
use crate::json::{Document, MAX_STRICT_ERRORS, ParseError, ParseOptions};
use crate::types::{FieldType, Type};

/// Unknown and duplicate fields of a document.
pub(super) fn errors(ty: &'static Type, bytes: &[u8]) -> Result<Vec<String>, ParseError> {
    let document = Document::parse(bytes, ParseOptions::default())?;
    let mut found = Found::default();
    found.object(Some(ty), &document, "");
    Ok(found.errors)
}

/// Unknown fields of a value, in key order.
pub(super) fn unknown_of_value(ty: &'static Type, value: &Value) -> Vec<String> {
    let mut found = Found::default();
    found.object(Some(ty), &document(value), "");
    found.errors
}

fn document(value: &Value) -> Document {
    match value {
        Value::Null => Document::Null,
        Value::Bool(value) => Document::Bool(*value),
        Value::Number(number) => Document::Number(number.to_string()),
        Value::String(text) => Document::String(text.clone()),
        Value::Array(items) => Document::Array(items.iter().map(document).collect()),
        Value::Object(map) => Document::Object(map.iter().map(|(k, v)| (k.clone(), document(v))).collect()),
    }
}

#[derive(Default)]
struct Found {
    errors: Vec<String>,
    seen: BTreeSet<String>,
}

impl Found {
    fn add(&mut self, what: &str, path: &str) {
        let error = format!("{what} field {}", quote(path));
        if self.errors.len() < MAX_STRICT_ERRORS && self.seen.insert(error.clone()) {
            self.errors.push(error);
        }
    }

    /// Visits an object. Without a type, all its fields are known.
    fn object(&mut self, ty: Option<&'static Type>, document: &Document, path: &str) {
        let Document::Object(fields) = document else { return };
        let mut keys = BTreeSet::new();
        for (name, value) in fields {
            let at = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            let field = ty.filter(|ty| !ty.any).map(|ty| ty.field(name));
            if let Some(None) = field {
                self.add("unknown", &at);
                continue;
            }
            if !keys.insert(name.as_str()) {
                self.add("duplicate", &at);
            }
            self.value(field.flatten().map(|field| &field.ty), value, &at);
        }
    }

    fn value(&mut self, ty: Option<&'static FieldType>, document: &Document, path: &str) {
        match (ty, document) {
            (Some(FieldType::Object(of)), _) => self.object(Some(of.get()), document, path),
            (Some(FieldType::List(of)), Document::Array(items)) => {
                for (index, item) in items.iter().enumerate() {
                    self.value(Some(of), item, &format!("{path}[{index}]"));
                }
            }
            (Some(FieldType::Map(of)), Document::Object(entries)) => {
                let mut keys = BTreeSet::new();
                for (key, entry) in entries {
                    let at = format!("{path}.{key}");
                    if !keys.insert(key.as_str()) {
                        self.add("duplicate", &at);
                    }
                    self.value(Some(of), entry, &at);
                }
            }
            _ => {}
        }
    }
}
