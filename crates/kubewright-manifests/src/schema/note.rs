//! Notes that markers leave in a schema for CRD generation.
//!
//! They are under a single private key, which generated CRDs never contain.

use serde_json::{Map, Value, json};

/// The schema keyword that holds the notes of markers until the CRD is generated.
pub(crate) const KEY: &str = "x-kubewright-notes";

/// Records that the marker `name` supports only these types and added `keys`.
pub(crate) fn fits<'a>(
    map: &mut Map<String, Value>,
    name: &str,
    on: &[&str],
    keys: impl IntoIterator<Item = &'a str>,
) {
    let keys: Vec<&str> = keys.into_iter().collect();
    add(map, json!({ "marker": name, "on": on, "keys": keys }));
}

/// Records that the marker `name` needs these fields.
pub(crate) fn has_fields(map: &mut Map<String, Value>, name: &str, fields: &[String]) {
    add(map, json!({ "marker": name, "fields": fields }));
}

/// Records that the marker `name` applies to the schema at `key`, which was missing.
pub(crate) fn misses(map: &mut Map<String, Value>, name: &str, key: &str) {
    add(map, json!({ "marker": name, "misses": key }));
}

/// Removes the notes and returns them.
pub(crate) fn take(map: &mut Map<String, Value>) -> Vec<Value> {
    match map.remove(KEY) {
        Some(Value::Array(notes)) => notes,
        _ => Vec::new(),
    }
}

fn add(map: &mut Map<String, Value>, note: Value) {
    if let Value::Array(notes) = map.entry(KEY).or_insert_with(|| json!([])) {
        notes.push(note);
    }
}
