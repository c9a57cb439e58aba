//! Validation of values against schemas.

use super::*;
use crate::custom::prune_paths;
use proptest::prelude::*;
use serde_json::json;

#[track_caller]
fn errors(schema: &Value, value: &Value) -> Vec<String> {
    let schema = Structural::parse(schema).unwrap();
    validate(&schema, value).iter().map(ToString::to_string).collect()
}

#[test]
fn a_type_error_contains_the_actual_type() {
    let schema = json!({"type": "object", "properties": {
        "i": {"type": "integer"}, "s": {"type": "string"}, "n": {"type": "number"},
        "is": {"x-kubernetes-int-or-string": true}, "d": {"type": "string", "format": "date-time"},
    }});
    assert_eq!(
        errors(&schema, &json!({"i": "x", "s": 1, "n": true, "is": 1.5, "d": 3})),
        [
            r#"d: Invalid value: "int64": d in body must be of type date-time: "int64""#,
            r#"i: Invalid value: "string": i in body must be of type integer: "string""#,
            r#"is: Invalid value: "number": is in body must be of type integer,string: "number""#,
            r#"n: Invalid value: "boolean": n in body must be of type number: "boolean""#,
            r#"s: Invalid value: "integer": s in body must be of type string: "integer""#,
        ]
    );
    assert!(errors(&schema, &json!({"i": 1000.0, "n": 1, "is": "x"})).is_empty());
    assert_eq!(
        errors(&schema, &json!({"i": 1.5})),
        [
            r#"i: Invalid value: "number": i in body must be of type integer: "number""#,
            r#"<nil>: Invalid value: "": Checked value must be of type integer (default format) in i"#
        ]
    );
    assert_eq!(
        errors(&schema, &json!({"s": null})),
        [r#"s: Invalid value: "null": s in body must be of type string: "null""#]
    );
    assert_eq!(
        errors(&schema, &json!([])),
        [r#"<nil>: Invalid value: "array":  in body must be of type object: "array""#]
    );
}

#[test]
fn required_fields_of_the_root_have_no_leading_dot() {
    let schema = json!({"type": "object", "required": ["spec"], "additionalProperties": {"type": "string", "minLength": 2}});
    assert_eq!(
        errors(&schema, &json!({"a": "x"})),
        [r#"a: Invalid value: "x": .a in body should be at least 2 chars long"#, "spec: Required value"]
    );
}

#[test]
fn enums_compare_with_gos_conversions() {
    let schema = json!({"enum": [1, "A", 2.5]});
    for good in [json!(1), json!(1.7), json!(65), json!("A"), json!(2.5)] {
        assert!(errors(&schema, &good).is_empty(), "{good}");
    }
    assert_eq!(
        errors(&schema, &json!("B")),
        [r#"<nil>: Unsupported value: "B": supported values: "1", "A", "2.5""#]
    );
    assert_eq!(
        errors(&schema, &Value::Null),
        [r#"<nil>: Unsupported value: null: supported values: "1", "A", "2.5""#]
    );
}

#[test]
fn the_best_matching_alternative_is_reported() {
    let schema = json!({"type": "object", "properties": {"x": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "anyOf": [{"required": ["a"]}, {"properties": {"b": {"maxLength": 1}}}]}}});
    assert_eq!(
        errors(&schema, &json!({"x": {"b": "long"}})),
        [
            r#"<nil>: Invalid value: "": "x" must validate at least one schema (anyOf)"#,
            "x.b: Too long: may not be more than 1 byte"
        ]
    );
}

#[test]
fn equal_texts_are_reported_once() {
    let schema = json!({"type": "string", "maxLength": 1, "allOf": [{"maxLength": 1}]});
    assert_eq!(
        errors(&schema, &json!("ab")),
        [
            "<nil>: Too long: may not be more than 1 byte",
            r#"<nil>: Invalid value: "": "" must validate all the schemas (allOf). None validated"#
        ]
    );
}

#[test]
fn bounds_out_of_range_are_compared_like_upstream() {
    assert_eq!(
        errors(&json!({"type": "number", "multipleOf": 0.5}), &json!(1)),
        ["<nil>: Invalid value: 0: factor MultipleOf declared for  must be positive: 0"]
    );
    assert_eq!(
        errors(&json!({"type": "integer", "maximum": 3.5}), &json!(4)),
        [
            r#"<nil>: Invalid value: "": Maximum boundary value must be of type integer (default format) in "#,
            "<nil>: Invalid value: 4:  in body should be less than or equal to 3.5"
        ]
    );
    assert!(errors(&json!({"type": "number", "multipleOf": 0.1}), &json!(0.3)).is_empty());
}

#[test]
fn item_and_property_counts_are_validated() {
    let schema = json!({"type": "array", "uniqueItems": true, "minItems": 1, "maxItems": 2});
    assert_eq!(
        errors(&schema, &json!([1, 1, 2])),
        [
            "<nil>: Too many: 3: must have at most 2 items",
            r#"<nil>: Invalid value: "":  in body shouldn't contain duplicates"#
        ]
    );
    let closed = json!({"type": "object", "properties": {"a": {}}, "additionalProperties": false});
    assert_eq!(
        errors(&closed, &json!({"a": 1, "b": 1})),
        [r#"<nil>: Invalid value: "b": .b in body is a forbidden property"#]
    );
}

#[test]
fn an_invalid_pattern_fails_every_string() {
    assert_eq!(
        errors(&json!({"type": "string", "pattern": "("}), &json!("x")),
        [
            r#"<nil>: Invalid value: "x":  in body should match '(, but pattern is invalid: error parsing regexp: missing closing ): `(`'"#
        ]
    );
}

fn ratcheted(schema: &Value, new: &Value, old: &Value) -> Vec<String> {
    let schema = Structural::parse(schema).unwrap();
    validate_update(&schema, new, old).iter().map(|error| error.field.clone()).collect()
}

#[test]
fn unchanged_invalid_values_are_accepted() {
    let schema = json!({"type": "object", "properties": {
        "a": {"type": "string", "maxLength": 1}, "b": {"type": "string", "maxLength": 1},
        "l": {"type": "array", "items": {"type": "string", "maxLength": 1}},
        "o": {"type": "object", "required": ["x"], "properties": {"x": {"type": "string"}, "y": {"type": "string"}}},
    }});
    let old = json!({"a": "long", "b": "x", "l": ["long", "y"], "o": {"y": "1"}});
    assert!(ratcheted(&schema, &old, &old).is_empty());
    let changed = json!({"a": "long", "b": "wrong", "l": ["long", "z"], "o": {"y": "2"}});
    assert_eq!(ratcheted(&schema, &changed, &old), ["b", "l[0]", "o.x"]);
}

#[test]
fn items_of_list_maps_correlate_by_key() {
    let schema = json!({"type": "object", "properties": {"m": {"type": "array", "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"], "items": {"type": "object",
        "properties": {"k": {"type": "string"}, "v": {"type": "string", "maxLength": 1}}}}}});
    let old = json!({"m": [{"k": "a", "v": "long"}, {"k": "b", "v": "long"}]});
    assert!(
        ratcheted(&schema, &json!({"m": [{"k": "b", "v": "long"}, {"k": "a", "v": "long"}]}), &old)
            .is_empty()
    );
    assert_eq!(
        ratcheted(
            &schema,
            &json!({"m": [{"k": "c", "v": "long"}, {"k": "a", "v": "long"}, {"k": "b", "v": "other"}]}),
            &old
        ),
        ["m[0].v", "m[2].v"]
    );
}

#[test]
fn undeclared_fields_do_not_correlate() {
    let schema = json!({"type": "object", "properties": {"o": {"type": "object", "required": ["x"],
        "x-kubernetes-preserve-unknown-fields": true}}});
    let old = json!({"o": {"unknown": 1}});
    assert_eq!(ratcheted(&schema, &old, &old), ["o.x"]);
    let empty = json!({"o": {}});
    assert!(ratcheted(&schema, &empty, &empty).is_empty());
}

#[test]
fn junctors_are_ratcheted_only_as_a_whole() {
    let schema = json!({"type": "object", "properties": {"s": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "allOf": [{"properties": {"a": {"maxLength": 1}}}]}}});
    let old = json!({"s": {"a": "long"}});
    assert!(ratcheted(&schema, &old, &old).is_empty());
    assert_eq!(ratcheted(&schema, &json!({"s": {"a": "long", "b": "x"}}), &old), ["s.a", "<nil>"]);
}

/// Objects with and without the fields of a schema, of right and wrong types.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3..9_i64).prop_map(Value::from),
        (-3..9_i32).prop_map(|n| Value::from(f64::from(n) / 2.0)),
        "[a-c]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-f]", inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn mixed_schema() -> Structural {
    let map = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"],
        "items": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer", "minimum": 3}}}});
    Structural::parse(&json!({"type": "object", "required": ["a"], "properties": {
        "a": {"type": "string", "maxLength": 1},
        "b": {"type": "object", "additionalProperties": {"type": "integer", "multipleOf": 2}},
        "c": {"type": "array", "maxItems": 1, "items": {"type": "number", "enum": [1, 2.5]}},
        "d": map,
        "e": {"anyOf": [{"type": "string"}, {"minimum": 3}], "not": {"enum": [4]}},
    }}))
    .unwrap()
}

/// Whether all items of lists of type `map` have distinct keys; otherwise they do not correlate.
fn keyed(value: &Value) -> bool {
    let items = value.get("d").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let keys: Vec<Option<&str>> = items.iter().map(|item| item.get("a").and_then(Value::as_str)).collect();
    keys.iter().enumerate().all(|(at, key)| key.is_some() && !keys[..at].contains(key))
}

proptest! {
    #[test]
    fn pruning_is_idempotent(mut value in any_value()) {
        let schema = mixed_schema();
        prune_paths(&schema, &mut value, false);
        let once = value.clone();
        prop_assert!(prune_paths(&schema, &mut value, false).is_empty());
        prop_assert_eq!(value, once);
    }

    #[test]
    fn unchanged_objects_are_always_valid(mut value in any_value()) {
        let schema = mixed_schema();
        prune_paths(&schema, &mut value, false);
        prop_assume!(keyed(&value));
        let errors = validate_update(&schema, &value, &value);
        prop_assert!(errors.is_empty(), "{} of {}", errors[0], value);
    }

    #[test]
    fn an_update_has_no_more_errors_than_a_create(new in any_value(), old in any_value()) {
        let schema = mixed_schema();
        let created: Vec<String> = validate(&schema, &new).iter().map(ToString::to_string).collect();
        for error in validate_update(&schema, &new, &old) {
            prop_assert!(created.contains(&error.to_string()), "{}", error);
        }
    }
}

/// The texts of all errors would need 40 GB.
#[test]
fn errors_of_a_long_enum_are_limited() {
    let values: Vec<Value> = (0..20_000).map(|at| json!(format!("value-{at}"))).collect();
    for (values, invalid) in [(values, json!("x")), ((0..20_000).map(|at| json!(at)).collect(), json!(-1))] {
        let schema = json!({"type": "object", "properties": {
            "items": {"type": "array", "items": {"enum": values}}}});
        let schema = Structural::parse(&schema).unwrap();
        let errors = validate(&schema, &json!({"items": vec![invalid; 100_000]}));
        let bytes: usize = errors.iter().map(|error| error.to_string().len()).sum();
        assert!((1..3 << 20).contains(&bytes), "{bytes}");
        let last = errors.iter().next_back().unwrap().to_string();
        assert_eq!(last, "<nil>: Invalid value: null: too many errors; further errors are not reported");
        assert!(validate(&schema, &json!({"items": vec![values_of(&schema); 100_000]})).is_empty());
    }
}

/// A value of the enum of `items`.
fn values_of(schema: &Structural) -> Value {
    let allowed = schema.properties["items"].items.as_ref().unwrap().allowed.as_ref().unwrap();
    if allowed.contains(&json!("value-7")) { json!("value-7") } else { json!(7) }
}

#[test]
fn many_distinct_errors_are_found_in_linear_time() {
    let schema =
        json!({"type": "object", "properties": {"items": {"type": "array", "items": {"type": "string"}}}});
    let schema = Structural::parse(&schema).unwrap();
    let errors = validate(&schema, &json!({"items": vec![1; 200_000]}));
    assert!(errors.len() > 5_000);
}
