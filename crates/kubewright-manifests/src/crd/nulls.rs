//! Finds optional fields that are serialized as `null`.
//!
//! serde serializes `None` as `null` unless the field has `skip_serializing_if`, and the API server rejects
//! `null` if the schema is not `nullable`. Compares schemars' schemas for deserialization, where the field is
//! optional, and serialization, where it is required.

use serde_json::{Map, Value};

use super::structural::Found;

/// Compares the deserialization and serialization schemas of a type.
pub(super) fn compare(read: &Value, written: &Value, path: &str, found: &mut Vec<Found>) {
    let (Value::Object(read), Value::Object(written)) = (read, written) else { return };
    if let (Some(Value::Object(fields)), Some(Value::Object(same))) =
        (read.get("properties"), written.get("properties"))
    {
        let always = |name: &str| {
            written
                .get("required")
                .and_then(Value::as_array)
                .is_some_and(|all| all.iter().any(|one| one == name))
        };
        for (name, field) in fields {
            let path = super::structural::child(path, name);
            if always(name) && field.as_object().is_some_and(|field| takes_null(field) && !is_nullable(field))
            {
                found.push(Found {
                    code: "KW104",
                    warning: false,
                    field: path.clone(),
                    message: "a `None` here is written as `null`, which the API server rejects: the field is optional, \
                              not nullable"
                        .to_owned(),
                    help: "add `#[serde(default, skip_serializing_if = \"Option::is_none\")]`; or, if null has its \
                           own meaning, `#[schemars(transform = schema::nullable())]`"
                        .to_owned(),
                });
            }
            if let Some(written) = same.get(name) {
                compare(field, written, &path, found);
            }
        }
    }
    for (key, step) in [("items", "[]"), ("additionalProperties", "[*]")] {
        if let (Some(read), Some(written)) = (read.get(key), written.get(key)) {
            compare(read, written, &format!("{path}{step}"), found);
        }
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        if let (Some(Value::Array(read)), Some(Value::Array(written))) = (read.get(key), written.get(key)) {
            read.iter().zip(written).for_each(|(read, written)| compare(read, written, path, found));
        }
    }
}

fn takes_null(schema: &Map<String, Value>) -> bool {
    let is_null = |value: &Value| value == "null";
    let type_is_null = match schema.get("type") {
        Some(Value::Array(types)) => types.iter().any(is_null),
        _ => false,
    };
    let choices =
        ["anyOf", "oneOf"].iter().filter_map(|key| schema.get(*key)).filter_map(Value::as_array).flatten();
    type_is_null
        || choices
            .filter_map(Value::as_object)
            .any(|one| one.get("type").is_some_and(is_null) || takes_null(one))
}

fn is_nullable(schema: &Map<String, Value>) -> bool {
    schema.get("nullable") == Some(&Value::Bool(true))
        // Accepts any value, including null.
        || schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true)) && !schema.contains_key("type")
}
