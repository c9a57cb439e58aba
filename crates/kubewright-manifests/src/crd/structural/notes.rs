//! Checks that markers match the schemas that they are on.

use serde_json::{Map, Value};

use super::Walk;
use crate::schema::union::INT_OR_STRING;

/// Checks one note, and removes the keywords of a marker that does not match.
pub(super) fn check(walk: &mut Walk<'_>, map: &mut Map<String, Value>, note: &Value, path: &str) {
    let marker = note["marker"].as_str().unwrap_or_default();
    let strings =
        |key: &str| note[key].as_array().into_iter().flatten().filter_map(Value::as_str).collect::<Vec<_>>();
    if let Some(key) = note["misses"].as_str() {
        let (message, help) = if map.contains_key(key) {
            (
                format!("`schema::{marker}` has no effect inside a separate type"),
                format!("put `#[schemars(transform = schema::{marker}(...))]` on that type"),
            )
        } else {
            let on = if key == "items" { "a list" } else { "a map" };
            (
                format!("`schema::{marker}` is for {on}, but this is {}", named(map)),
                format!("remove `schema::{marker}`"),
            )
        };
        walk.report("KW101", path, &message, &help);
        return;
    }
    for field in strings("fields") {
        if map.get("properties").is_none_or(|fields| fields.get(field).is_none()) {
            let known: Vec<&str> = match map.get("properties") {
                Some(Value::Object(fields)) => fields.keys().map(String::as_str).collect(),
                _ => Vec::new(),
            };
            walk.report(
                "KW102",
                path,
                &format!("`schema::{marker}` names the field {field:?}, which does not exist"),
                &format!("use JSON field names: {}", known.join(", ")),
            );
        }
    }
    let on = strings("on");
    if on.is_empty() {
        return;
    }
    let kind = map.get("type").and_then(Value::as_str).unwrap_or_default();
    let either = map.get(INT_OR_STRING) == Some(&Value::Bool(true));
    let fits = on.contains(&kind) || either && on.iter().any(|on| matches!(*on, "integer" | "string"));
    if !fits {
        let on: Vec<&str> = on.into_iter().map(words).collect();
        for key in strings("keys") {
            map.remove(key);
        }
        walk.report(
            "KW101",
            path,
            &format!("`schema::{marker}` is for {}, but this is {}", on.join(" or "), named(map)),
            &format!("remove `schema::{marker}`{}", meant(marker, map)),
        );
        return;
    }
    for key in strings("keys") {
        if kind == "integer"
            && let Some(bound) = map.get(key).and_then(Value::as_f64)
            && bound.fract() != 0.0
        {
            walk.report(
                "KW101",
                path,
                &format!("`schema::{marker}` has the bound {bound}, but this is an integer"),
                "use an integer",
            );
        }
    }
}

fn words(kind: &str) -> &str {
    match kind {
        "integer" => "an integer",
        "number" => "a number",
        "string" => "a string",
        "array" => "a list",
        "object" => "a map or a struct",
        "boolean" => "a boolean",
        _ => "anything",
    }
}

fn named(map: &Map<String, Value>) -> &'static str {
    if map.get(INT_OR_STRING) == Some(&Value::Bool(true)) {
        return "an integer or a string";
    }
    match map.get("type").and_then(Value::as_str) {
        Some("integer") => "an integer",
        Some("number") => "a number",
        Some("string") => "a string",
        Some("array") => "a list",
        Some("object") if map.contains_key("additionalProperties") => "a map",
        Some("object") => "a struct",
        Some("boolean") => "a boolean",
        _ => "anything",
    }
}

/// The corresponding marker for this type.
fn meant(marker: &str, map: &Map<String, Value>) -> String {
    let bounds = ["min_length", "min_items", "min_properties", "max_length", "max_items", "max_properties"];
    let suffix = match map.get("type").and_then(Value::as_str) {
        Some("string") => "length",
        Some("array") => "items",
        Some("object") => "properties",
        _ => return String::new(),
    };
    match marker.split_once('_') {
        Some((end, _)) if bounds.contains(&marker) => format!(", or write `schema::{end}_{suffix}`"),
        _ => String::new(),
    }
}
