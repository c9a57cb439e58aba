//! Notes that markers leave in a schema for whoever makes a definition of it.
//!
//! They are under one key that no schema language has. A definition that goes out has none.

use serde_json::{Map, Value, json};

/// Where notes are.
pub(crate) const KEY: &str = "x-kubewright-notes";

/// The marker `name` is right on these types only; otherwise its `keys` mean nothing.
pub(crate) fn fits<'a>(
    map: &mut Map<String, Value>,
    name: &str,
    on: &[&str],
    keys: impl IntoIterator<Item = &'a str>,
) {
    let keys: Vec<&str> = keys.into_iter().collect();
    add(map, json!({ "marker": name, "on": on, "keys": keys }));
}

/// The marker `name` wants fields of these names.
pub(crate) fn has_fields(map: &mut Map<String, Value>, name: &str, fields: &[String]) {
    add(map, json!({ "marker": name, "fields": fields }));
}

/// The marker `name` is about what is below `key`, and there was nothing.
pub(crate) fn misses(map: &mut Map<String, Value>, name: &str, key: &str) {
    add(map, json!({ "marker": name, "misses": key }));
}

/// Takes the notes out.
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
