//! Detects types that occur more than once in a schema. A CRD has no references: where two Go fields share a
//! type, the schema is repeated. Equal schemas become one Rust type if the field names end with the same
//! words.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{idents, known};

/// A schema without field-level keywords, plus the type's documentation.
pub(super) type Key = String;

/// The key of a schema. `doc` is the type's documentation: list items have their own, fields document the
/// field.
pub(super) fn key(schema: &Map<String, Value>, doc: Option<&str>) -> Key {
    let mut schema = schema.clone();
    for own in ["description", "default", "nullable"] {
        schema.remove(own);
    }
    format!("{}{}", Value::from(schema), doc.unwrap_or_default())
}

/// The types that occur more than once, with their common name suffix.
pub(super) fn find(schemas: &[&Value]) -> BTreeMap<Key, String> {
    let mut found: BTreeMap<Key, Vec<String>> = BTreeMap::new();
    for schema in schemas {
        fields(schema, &mut found);
    }
    let shared = found.into_iter().filter(|(_, names)| names.len() > 1);
    shared.map(|(key, names)| (key, idents::common_end(&names))).filter(|(_, end)| !end.is_empty()).collect()
}

fn fields(schema: &Value, found: &mut BTreeMap<Key, Vec<String>>) {
    for (name, field) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        walk(field, &idents::part(name), None, found);
    }
}

fn walk(schema: &Value, name: &str, doc: Option<&str>, found: &mut BTreeMap<Key, Vec<String>>) {
    let Some(object) = schema.as_object() else { return };
    if known::find(object).is_some() {
        return;
    }
    for inner in ["items", "additionalProperties"] {
        if let Some(item) = object.get(inner) {
            let doc = item.get("description").and_then(Value::as_str);
            walk(item, &idents::singular(name), doc, found);
            return;
        }
    }
    let is_enum = object.get("enum").is_some() && object.get("type").is_some_and(|is| is == "string");
    if is_enum || object.contains_key("properties") {
        found.entry(key(object, doc)).or_default().push(name.to_owned());
    }
    fields(schema, found);
}
