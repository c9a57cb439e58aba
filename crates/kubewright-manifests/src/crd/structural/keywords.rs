//! Converts keywords of JSON Schema to those of OpenAPI 3.0 that CRD schemas support.

use std::sync::LazyLock;

use kubewright_apimachinery::types as facts;
use serde_json::{Map, Number, Value, json};

use super::Walk;
use crate::schema::union::PRESERVE;

/// Converts the keywords of one schema, without nested schemas.
pub(super) fn translate(walk: &mut Walk<'_>, map: &mut Map<String, Value>, path: &str) {
    if let Some(value) = map.remove("const") {
        map.insert("enum".to_owned(), json!([value]));
    }
    if let Some(Value::Array(examples)) = map.remove("examples")
        && let Some(first) = examples.into_iter().next()
    {
        map.entry("example").or_insert(first);
    }
    // kube emits this for atomic structs. The API server does not support it.
    if let Some(merge) = map.remove("x-kubernetes-struct-type") {
        map.insert("x-kubernetes-map-type".to_owned(), merge);
    }
    formats(map);
    for (bound, exclusive) in [("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")] {
        if let Some(value @ Value::Number(_)) = map.get(exclusive).cloned() {
            map.insert(bound.to_owned(), value);
            map.insert(exclusive.to_owned(), true.into());
        }
    }
    lists(walk, map, path);
    maps(walk, map, path);
    if let Some(Value::Object(not)) = map.get_mut("not") {
        // Only value validations are allowed here.
        not.remove("type");
        if let Some(value) = not.remove("const") {
            not.insert("enum".to_owned(), json!([value]));
        }
    }
    if let Some(default) = map.get_mut("default") {
        without_nulls(default);
    }
    if map.get("default").is_some_and(Value::is_null) {
        map.remove("default");
    }
    if map.get("nullable") == Some(&Value::Bool(false)) {
        map.remove("nullable");
    }
    if let Some(Value::Array(required)) = map.get_mut("required") {
        required.sort_by(|one, other| one.as_str().cmp(&other.as_str()));
        required.dedup();
        if required.is_empty() {
            map.remove("required");
        }
    }
    for key in NUMBERS {
        if let Some(value) = map.get_mut(key) {
            whole(value);
        }
    }
}

const NUMBERS: [&str; 9] = [
    "minimum",
    "maximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
];

/// Converts integer formats to those of the API server, with the range of the Rust type.
fn formats(map: &mut Map<String, Value>) {
    let known = match (map.get("type").and_then(Value::as_str), map.get("format").and_then(Value::as_str)) {
        (Some("integer"), Some("int8" | "int16" | "uint8" | "uint16")) => "int32",
        (Some("integer"), Some("uint32" | "uint64" | "uint128" | "int128" | "uint" | "int")) => "int64",
        // There is no format that accepts both IPv4 and IPv6.
        (Some("string"), Some("ip")) => {
            map.remove("format");
            return;
        }
        _ => return,
    };
    if map.get("format").is_some_and(|format| format == "uint32") {
        map.entry("maximum").or_insert(u32::MAX.into());
    }
    map.insert("format".to_owned(), known.into());
}

fn lists(walk: &mut Walk<'_>, map: &mut Map<String, Value>, path: &str) {
    if map.remove("uniqueItems") == Some(Value::Bool(true)) && !map.contains_key("x-kubernetes-list-type") {
        let scalar = map
            .get("items")
            .and_then(|items| items["type"].as_str())
            .is_some_and(|kind| matches!(kind, "string" | "integer" | "number" | "boolean"));
        if scalar {
            map.insert("x-kubernetes-list-type".to_owned(), "set".into());
        } else {
            walk.warn(
                "KW108",
                path,
                "unique items are not validated, because CRDs forbid `uniqueItems`",
                "use a `Vec` with `#[schemars(transform = schema::list_map([...]))]`",
            );
        }
    }
    // A tuple or an array of fixed length.
    if let Some(Value::Array(each)) = map.remove("prefixItems") {
        map.remove("items");
        if each.windows(2).all(|two| two[0] == two[1])
            && let Some(first) = each.into_iter().next()
        {
            map.insert("items".to_owned(), first);
        } else {
            map.insert("items".to_owned(), json!({ PRESERVE: true }));
            walk.report(
                "KW108",
                path,
                "CRD schemas cannot express list items of different types",
                "use a struct with named fields",
            );
        }
    }
}

fn maps(walk: &mut Walk<'_>, map: &mut Map<String, Value>, path: &str) {
    if let Some(Value::Object(patterns)) = map.remove("patternProperties")
        && let Some((pattern, values)) = patterns.into_iter().next()
    {
        walk.warn(
            "KW108",
            path,
            &format!("map keys are not validated against {pattern}, because CRDs forbid `patternProperties`"),
            "use string keys, and validate them with `#[schemars(transform = schema::validation(...))]`",
        );
        map.insert("additionalProperties".to_owned(), values);
    }
    let others = map.remove("additionalProperties").or(map.remove("unevaluatedProperties"));
    map.remove("unevaluatedProperties");
    match others {
        None | Some(Value::Bool(false)) => {}
        // A map flattened into a struct.
        Some(_) if map.contains_key("properties") => _ = map.insert(PRESERVE.to_owned(), true.into()),
        Some(values) => _ = map.insert("additionalProperties".to_owned(), values),
    }
}

/// Removes absent fields from a default, which serde serializes as null.
fn without_nulls(value: &mut Value) {
    if let Value::Object(map) = value {
        map.retain(|_, value| !value.is_null());
        map.values_mut().for_each(without_nulls);
    }
}

/// Converts `1.0` to 1.
fn whole(value: &mut Value) {
    if let Some(float) = value.as_f64().filter(|_| value.is_f64()) {
        // Not all larger floats are exact integers.
        const EXACT: f64 = 9_007_199_254_740_992.0;
        if float.fract() == 0.0 && float.abs() < EXACT {
            let text = format!("{float:.0}");
            if let Ok(number) = text.parse::<i64>() {
                *value = Value::Number(Number::from(number));
            }
        }
    }
}

static KNOWN: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let fields = facts::type_named("apiextensions.v1.JSONSchemaProps").map(|props| &props.fields[..]);
    fields.unwrap_or_default().iter().map(|field| field.name).collect()
});

/// Keywords of schemars that the API server does not need.
const IDLE: [&str; 8] = [
    "$schema",
    "$defs",
    "definitions",
    "readOnly",
    "writeOnly",
    "deprecated",
    "contentEncoding",
    "contentMediaType",
];

/// Removes keywords that CRD schemas do not support.
pub(super) fn prune(walk: &mut Walk<'_>, map: &mut Map<String, Value>, path: &str) {
    map.retain(|key, _| {
        let known = KNOWN.contains(&key.as_str()) && !IDLE.contains(&key.as_str());
        if !known && !IDLE.contains(&key.as_str()) {
            walk.report(
                "KW103",
                path,
                &format!("CRD schemas do not support the keyword {key:?}; it would be dropped"),
                "use a supported keyword, or a marker of `schema`",
            );
        }
        known
    });
}
