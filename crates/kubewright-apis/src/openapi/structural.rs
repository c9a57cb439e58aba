//! Published schemas of custom resources.
//!
//! [`published`] keeps the keywords of structural schemas and drops those with zero values, like a round trip
//! through upstream's types. For v2 it also drops what Swagger does not support or kubectl cannot handle.
//! Schemas are validated when a CRD is written, not here.

use serde_json::{Map, Value, json};

use super::schema::Form;

/// Keywords whose value is a scalar, a list of scalars or arbitrary JSON.
const PLAIN: [&str; 30] = [
    "default",
    "description",
    "enum",
    "example",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "externalDocs",
    "format",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "nullable",
    "pattern",
    "required",
    "title",
    "type",
    "uniqueItems",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
];

/// Keywords that structural schemas cannot have. A schema with one of them is not published.
const UNSUPPORTED: [&str; 7] =
    ["$ref", "$schema", "additionalItems", "definitions", "dependencies", "id", "patternProperties"];

/// The published schema, or `None` if it cannot be published.
pub(super) fn published(schema: &Value, form: Form) -> Option<Map<String, Value>> {
    let mut schema = structural(schema, false)?;
    if form == Form::V2 {
        to_v2(&mut schema);
    }
    Some(schema)
}

/// Converts one schema node. Upstream drops `additionalProperties` inside `allOf`, `anyOf`, `oneOf` and `not`
/// (`nested`).
fn structural(schema: &Value, nested: bool) -> Option<Map<String, Value>> {
    let schema = schema.as_object()?;
    if UNSUPPORTED.iter().any(|key| schema.get(*key).is_some_and(|value| !is_zero(value))) {
        return None;
    }
    let mut out = Map::new();
    for (key, value) in schema.iter().filter(|(_, value)| !value.is_null()) {
        let kept = match key.as_str() {
            "items" => Some(Value::Object(structural(value, nested)?)),
            "not" => Some(Value::Object(structural(value, true)?)),
            "properties" => {
                let properties = value.as_object()?.iter();
                let properties: Option<Map<_, _>> = properties
                    .map(|(name, value)| Some((name.clone(), structural(value, nested)?.into())))
                    .collect();
                Some(Value::Object(properties?)).filter(|properties| !is_zero(properties))
            }
            "additionalProperties" if !nested => match value {
                Value::Object(_) => Some(Value::Object(structural(value, nested)?)),
                value => value.is_boolean().then(|| value.clone()),
            },
            "allOf" | "anyOf" | "oneOf" => {
                let clauses = value.as_array()?.iter();
                let clauses: Option<Vec<Value>> =
                    clauses.map(|clause| Some(structural(clause, true)?.into())).collect();
                Some(Value::Array(clauses?)).filter(|clauses| !is_zero(clauses))
            }
            // Zero is a valid bound, and false and "" are valid defaults.
            "default" | "example" => Some(value.clone()),
            key if PLAIN.contains(&key) => (value.is_number() || !is_zero(value)).then(|| value.clone()),
            _ => None,
        };
        if let Some(kept) = kept {
            out.insert(key.clone(), kept);
        }
    }
    if !nested {
        unfold(&mut out);
    }
    Some(out)
}

/// Expresses `x-kubernetes-int-or-string` in standard OpenAPI, unless the schema already does.
fn unfold(schema: &mut Map<String, Value>) {
    if schema.get("x-kubernetes-int-or-string") != Some(&Value::Bool(true)) {
        return;
    }
    let either = json!([{ "type": "integer" }, { "type": "string" }]);
    let first_of_all = schema.get("allOf").and_then(|all| all.get(0)).and_then(|first| first.get("anyOf"));
    if schema.get("anyOf") == Some(&either) || first_of_all == Some(&either) {
        return;
    }
    if schema.contains_key("anyOf") {
        let all = schema.entry("allOf").or_insert_with(|| json!([]));
        if let Value::Array(all) = all {
            all.insert(0, json!({ "anyOf": either }));
        }
    } else {
        schema.insert("anyOf".to_owned(), either);
    }
}

/// Drops keywords that v2 does not have, and schemas with which kubectl would reject valid objects.
fn to_v2(schema: &mut Map<String, Value>) {
    for key in ["allOf", "anyOf", "default", "not", "oneOf"] {
        schema.remove(key);
    }
    let is_true = |schema: &Map<_, _>, key| schema.get(key) == Some(&Value::Bool(true));
    let preserve = is_true(schema, "x-kubernetes-preserve-unknown-fields");
    let nullable = schema.remove("nullable").is_some();
    if nullable {
        schema.remove("type");
    }
    if nullable || preserve {
        // kubectl cannot handle an untyped value with properties or items, or unknown fields next to known
        // ones.
        schema.remove("items");
        schema.remove("properties");
    }
    let ty = schema.get("type").and_then(Value::as_str);
    if (ty == Some("array") && !schema.contains_key("items")) || (ty == Some("object") && preserve) {
        schema.remove("type");
    }
    keep_required(schema);
    for key in ["items", "additionalProperties"] {
        if let Some(Value::Object(of)) = schema.get_mut(key) {
            to_v2(of);
        }
    }
    for (_, of) in schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        if let Value::Object(of) = of {
            to_v2(of);
        }
    }
}

/// Removes nullable fields from `required`, because kubectl treats null as absent.
fn keep_required(schema: &mut Map<String, Value>) {
    let nullable = |schema: &Value| schema.get("nullable") == Some(&Value::Bool(true));
    if schema.get("additionalProperties").is_some_and(nullable) {
        schema.remove("required");
    }
    let Some(Value::Array(required)) = schema.get("required") else { return };
    let properties = schema.get("properties");
    let of = |name: &Value| properties.and_then(|of| of.get(name.as_str()?));
    let kept: Vec<_> = required.iter().filter(|name| !of(name).is_some_and(nullable)).cloned().collect();
    if kept.is_empty() {
        schema.remove("required");
    } else {
        schema.insert("required".to_owned(), kept.into());
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(form: Form, schema: &Value, expected: &Value) {
        assert_eq!(published(schema, form).map(Value::Object), Some(expected.clone()));
    }

    #[test]
    fn known_keywords_are_kept_and_zero_values_are_dropped() {
        check(
            Form::V3,
            &json!({
                "type": "object", "description": "", "nullable": false, "unknown": 1, "properties": {
                    "size": { "type": "integer", "minimum": 0, "default": 0, "enum": [] },
                },
            }),
            &json!({
                "type": "object",
                "properties": { "size": { "type": "integer", "minimum": 0, "default": 0 } },
            }),
        );
    }

    #[test]
    fn int_or_string_is_expressed_in_standard_openapi() {
        let either = json!([{ "type": "integer" }, { "type": "string" }]);
        let mark = "x-kubernetes-int-or-string";
        check(Form::V3, &json!({ mark: true }), &json!({ mark: true, "anyOf": either }));
        check(Form::V3, &json!({ mark: true, "anyOf": either }), &json!({ mark: true, "anyOf": either }));
        check(
            Form::V3,
            &json!({ mark: true, "anyOf": [{ "maximum": 5 }] }),
            &json!({ mark: true, "anyOf": [{ "maximum": 5 }], "allOf": [{ "anyOf": either }] }),
        );
        check(Form::V2, &json!({ mark: true }), &json!({ mark: true }));
    }

    #[test]
    fn v2_drops_what_kubectl_cannot_handle() {
        check(
            Form::V2,
            &json!({
                "type": "object",
                "required": ["a", "b"],
                "oneOf": [{ "required": ["a"] }],
                "properties": {
                    "a": { "type": "object", "nullable": true, "properties": { "x": { "type": "string" } } },
                    "b": { "type": "string", "default": "b" },
                    "c": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
                    "d": { "type": "array", "nullable": true, "items": { "type": "string" } },
                },
            }),
            &json!({
                "type": "object",
                "required": ["b"],
                "properties": {
                    "a": {},
                    "b": { "type": "string" },
                    "c": { "x-kubernetes-preserve-unknown-fields": true },
                    "d": {},
                },
            }),
        );
    }

    #[test]
    fn a_schema_that_is_not_structural_is_not_published() {
        for bad in [
            json!({ "type": "object", "properties": { "a": { "$ref": "#/b" } } }),
            json!({ "type": "object", "oneOf": [{ "definitions": { "a": {} } }] }),
            json!({ "type": "object", "properties": [] }),
        ] {
            assert!(published(&bad, Form::V3).is_none(), "{bad}");
        }
    }

    fn schemas() -> impl Strategy<Value = Value> {
        let leaf = (0..6_usize).prop_map(|i| {
            [
                json!({ "type": "string", "nullable": true, "default": "" }),
                json!({ "type": "integer", "minimum": 0, "description": "" }),
                json!({ "x-kubernetes-int-or-string": true, "anyOf": [{ "maximum": 3 }] }),
                json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true, "unknown": 1 }),
                json!({ "type": "object", "additionalProperties": true, "properties": null }),
                json!({ "type": "array", "nullable": true, "enum": [] }),
            ][i]
                .clone()
        });
        leaf.prop_recursive(4, 24, 3, |inner| {
            (prop::collection::btree_map("[a-c]", inner.clone(), 0..3), inner, any::<[bool; 4]>()).prop_map(
                |(properties, one, [nullable, list, junctor, required])| {
                    let mut schema = if list {
                        json!({ "type": "array", "items": one, "nullable": nullable })
                    } else {
                        json!({ "type": "object", "properties": properties, "nullable": nullable })
                    };
                    if junctor {
                        schema["anyOf"] = json!([one]);
                    }
                    if required {
                        schema["required"] = json!(["a", "b"]);
                    }
                    schema
                },
            )
        })
    }

    /// Visits every schema that is not inside `allOf`, `anyOf`, `oneOf` or `not`.
    fn walk(schema: &Value, visit: &mut impl FnMut(&Value)) {
        visit(schema);
        for key in ["items", "additionalProperties"] {
            schema.get(key).filter(|of| of.is_object()).into_iter().for_each(|of| walk(of, visit));
        }
        let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        properties.for_each(|(_, of)| walk(of, visit));
    }

    proptest! {
        #[test]
        fn publishing_is_idempotent(schema in schemas()) {
            for form in [Form::V2, Form::V3] {
                let once = Value::Object(published(&schema, form).unwrap());
                let twice = Value::Object(published(&once, form).unwrap());
                prop_assert_eq!(once, twice);
            }
        }

        #[test]
        fn v2_schemas_are_readable_by_kubectl(schema in schemas()) {
            let v2 = Value::Object(published(&schema, Form::V2).unwrap());
            walk(&v2, &mut |schema| {
                for key in ["allOf", "anyOf", "default", "not", "nullable", "oneOf"] {
                    assert!(schema.get(key).is_none(), "{key} in {schema}");
                }
                assert!(schema["type"] != "array" || schema["items"].is_object(), "{schema}");
            });
        }
    }
}
