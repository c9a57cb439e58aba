//! Swagger 2.0 form of the schemas of custom resources.
//!
//! Drops what Swagger does not support, and what kubectl cannot handle.

use serde_json::{Map, Value};

/// Converts a schema of OpenAPI v3: drops keywords that v2 does not have, and schemas with which kubectl would reject
/// valid objects.
pub(super) fn to_v2(schema: &mut Map<String, Value>) {
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

#[cfg(test)]
mod tests {
    use kubewright_apiextensions::Structural;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::openapi::schema::Form;

    fn published(schema: &Value, form: Form) -> Option<Map<String, Value>> {
        let mut schema = Structural::parse(schema).ok()?.to_openapi();
        if form == Form::V2 {
            to_v2(&mut schema);
        }
        Some(schema)
    }

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
