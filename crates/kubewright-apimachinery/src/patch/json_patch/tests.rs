//! JSON patches: results and errors. The cases with a ConfigMap are recordings of kube-apiserver.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::json::MAX_DEPTH;

fn apply(document: &Value, patch: &Value) -> Result<Value, String> {
    apply_json_patch(document, patch.to_string().as_bytes()).map_err(|error| error.to_string())
}

fn config_map() -> Value {
    json!({"metadata": {"annotations": {"a/b": "1"}, "finalizers": ["a", "b"]}, "data": {"a": "9", "b": "2"}})
}

/// Applies a patch to the ConfigMap and returns one part of it.
fn patched(patch: &Value, pointer: &str) -> Value {
    apply(&config_map(), patch).expect("the patch applies").pointer(pointer).cloned().unwrap_or_default()
}

fn error(patch: &Value) -> String {
    apply(&config_map(), patch).expect_err("the patch does not apply")
}

#[test]
fn fields_are_added_replaced_and_removed() {
    assert_eq!(patched(&json!([{"op": "add", "path": "/data/c", "value": "3"}]), "/data/c"), json!("3"));
    assert_eq!(patched(&json!([{"op": "add", "path": "/data/a", "value": "3"}]), "/data/a"), json!("3"));
    assert_eq!(patched(&json!([{"op": "replace", "path": "/data/a", "value": 1}]), "/data/a"), json!(1));
    assert_eq!(patched(&json!([{"op": "remove", "path": "/data/a"}]), "/data"), json!({"b": "2"}));
}

#[test]
fn fields_are_copied_and_moved() {
    let copy = json!([{"op": "copy", "from": "/data/a", "path": "/data/d"}]);
    assert_eq!(patched(&copy, "/data"), json!({"a": "9", "b": "2", "d": "9"}));
    let r#move = json!([{"op": "move", "from": "/data/a", "path": "/data/d"}]);
    assert_eq!(patched(&r#move, "/data"), json!({"b": "2", "d": "9"}));
}

#[test]
fn missing_values_count_as_null() {
    assert_eq!(
        patched(&json!([{"op": "replace", "path": "/data/no", "value": "x"}]), "/data/no"),
        json!("x")
    );
    assert_eq!(
        patched(&json!([{"op": "copy", "from": "/data/no", "path": "/data/a"}]), "/data/a"),
        json!(null)
    );
    assert_eq!(patched(&json!([{"op": "add", "path": "/data/a"}]), "/data/a"), json!(null));
    assert_eq!(patched(&json!([{"op": "test", "path": "/data/no", "value": null}]), "/data/a"), json!("9"));
    assert_eq!(patched(&json!([{"op": "test", "path": "/data/no"}]), "/data/a"), json!("9"));
}

#[test]
fn array_elements_are_addressed_by_index() {
    let finalizers = |patch: Value| patched(&patch, "/metadata/finalizers");
    assert_eq!(
        finalizers(json!([{"op": "add", "path": "/metadata/finalizers/1", "value": "m"}])),
        json!(["a", "m", "b"])
    );
    assert_eq!(
        finalizers(json!([{"op": "add", "path": "/metadata/finalizers/-", "value": "e"}])),
        json!(["a", "b", "e"])
    );
    assert_eq!(
        finalizers(json!([{"op": "add", "path": "/metadata/finalizers/2", "value": "e"}])),
        json!(["a", "b", "e"])
    );
    assert_eq!(finalizers(json!([{"op": "remove", "path": "/metadata/finalizers/0"}])), json!(["b"]));
    assert_eq!(
        finalizers(json!([{"op": "replace", "path": "/metadata/finalizers/01", "value": 1}])),
        json!(["a", 1])
    );
}

#[test]
fn negative_indices_count_from_the_end() {
    let finalizers = |patch: Value| patched(&patch, "/metadata/finalizers");
    assert_eq!(finalizers(json!([{"op": "remove", "path": "/metadata/finalizers/-1"}])), json!(["a"]));
    assert_eq!(
        finalizers(json!([{"op": "add", "path": "/metadata/finalizers/-1", "value": "e"}])),
        json!(["a", "b", "e"])
    );
    assert_eq!(
        finalizers(json!([{"op": "add", "path": "/metadata/finalizers/-3", "value": "s"}])),
        json!(["s", "a", "b"])
    );
    assert_eq!(
        finalizers(json!([{"op": "test", "path": "/metadata/finalizers/-2", "value": "a"}])),
        json!(["a", "b"])
    );
}

#[test]
fn paths_are_unescaped_and_text_before_the_first_slash_is_ignored() {
    let escaped = json!([{"op": "replace", "path": "/metadata/annotations/a~1b", "value": "x"}]);
    assert_eq!(patched(&escaped, "/metadata/annotations"), json!({"a/b": "x"}));
    let tilde = json!([{"op": "add", "path": "/data/t~01~x~0", "value": 1}]);
    assert_eq!(apply(&config_map(), &tilde).unwrap()["data"]["t~1~x~"], json!(1));
    assert_eq!(patched(&json!([{"op": "add", "path": "data/x", "value": 1}]), "/x"), json!(1));
}

#[test]
fn the_whole_document_can_be_replaced_and_tested() {
    assert_eq!(apply(&json!({}), &json!([{"op": "replace", "path": "", "value": [1]}])), Ok(json!([1])));
    assert_eq!(apply(&json!([1]), &json!([{"op": "add", "path": "/-", "value": 2}])), Ok(json!([1, 2])));
    assert_eq!(
        apply(&json!({"a": 1}), &json!([{"op": "test", "path": "", "value": {"a": 1.0}}])),
        Ok(json!({"a": 1}))
    );
    assert_eq!(
        apply(&json!({}), &json!([{"op": "test", "path": "", "value": {"a": 1}}])),
        Err("testing value  failed: test failed".to_owned())
    );
}

#[test]
fn operations_are_applied_in_order() {
    let patch = json!([
        {"op": "test", "path": "/data/a", "value": "9"},
        {"op": "add", "path": "/data/c", "value": {"x": [1]}},
        {"op": "add", "path": "/data/c/x/0", "value": 0},
    ]);
    assert_eq!(patched(&patch, "/data/c"), json!({"x": [0, 1]}));
}

#[test]
fn failures_have_the_librarys_text() {
    for (patch, message) in [
        (json!({"op": "test", "path": "/data/a", "value": "8"}), "testing value /data/a failed: test failed"),
        (json!({"op": "test", "path": "/data/a"}), "testing value /data/a failed: test failed"),
        (
            json!({"op": "test", "path": "/data/no", "value": "8"}),
            "testing value /data/no failed: test failed",
        ),
        (
            json!({"op": "test", "path": "/no/no", "value": "8"}),
            "test operation does not apply: is missing path: /no/no: missing value",
        ),
        (
            json!({"op": "test", "path": "/metadata/finalizers/-", "value": "8"}),
            "error in test for path: '/metadata/finalizers/-': strconv.Atoi: parsing \"-\": invalid syntax",
        ),
        (
            json!({"op": "test"}),
            "test operation failed to decode path: operation missing path field: missing value",
        ),
        (
            json!({"op": "remove", "path": "/data/no"}),
            "error in remove for path: '/data/no': Unable to remove nonexistent key: no: missing value",
        ),
        (
            json!({"op": "remove", "path": "/no/no"}),
            "remove operation does not apply: doc is missing path: \"/no/no\": missing value",
        ),
        (
            json!({"op": "remove", "path": "/metadata/finalizers/7"}),
            "error in remove for path: '/metadata/finalizers/7': Unable to access invalid index: 7: invalid index referenced",
        ),
        (json!({"op": "remove", "path": 1}), "remove operation failed to decode path: missing value"),
        (
            json!({"op": "add", "path": "/no/deep", "value": 1}),
            "add operation does not apply: doc is missing path: \"/no/deep\": missing value",
        ),
        (
            json!({"op": "add", "path": "/data/a/deep", "value": 1}),
            "add operation does not apply: doc is missing path: \"/data/a/deep\": missing value",
        ),
        (
            json!({"op": "add", "path": "", "value": {}}),
            "add operation does not apply: doc is missing path: \"\": missing value",
        ),
        (json!({"op": "add", "value": 1}), "add operation failed to decode path: missing value"),
        (
            json!({"op": "add", "path": "/metadata/finalizers/9", "value": 1}),
            "error in add for path: '/metadata/finalizers/9': Unable to access invalid index: 9: invalid index referenced",
        ),
        (
            json!({"op": "add", "path": "/metadata/finalizers/-4", "value": 1}),
            "error in add for path: '/metadata/finalizers/-4': Unable to access invalid index: -4: invalid index referenced",
        ),
        (
            json!({"op": "add", "path": "/metadata/finalizers/x", "value": 1}),
            "error in add for path: '/metadata/finalizers/x': value was not a proper array index: 'x': strconv.Atoi: parsing \"x\": invalid syntax",
        ),
        (
            json!({"op": "add", "path": "/metadata/finalizers/99999999999999999999", "value": 1}),
            "error in add for path: '/metadata/finalizers/99999999999999999999': value was not a proper array index: '99999999999999999999': strconv.Atoi: parsing \"99999999999999999999\": value out of range",
        ),
        (
            json!({"op": "replace", "path": "/metadata/finalizers/x", "value": 1}),
            "replace operation does not apply: doc is missing key: /metadata/finalizers/x: missing value",
        ),
        (
            json!({"op": "replace", "path": "/no/no", "value": 1}),
            "replace operation does not apply: doc is missing path: /no/no: missing value",
        ),
        (
            json!({"op": "replace", "path": "", "value": 1}),
            "replace operation value must be object or array: %!w(<nil>)",
        ),
        (
            json!({"op": "replace", "path": 1}),
            "replace operation failed to decode path: json: cannot unmarshal number into Go value of type string",
        ),
        (
            json!({"op": "move", "path": "/data/x"}),
            "move operation failed to decode from: operation, missing from field: missing value",
        ),
        (
            json!({"op": "move", "from": "/data/no", "path": "/data/x"}),
            "error in move for path: 'no': Unable to remove nonexistent key: no: missing value",
        ),
        (
            json!({"op": "move", "from": "/no/no", "path": "/data/x"}),
            "move operation does not apply: doc is missing from path: /no/no: missing value",
        ),
        (
            json!({"op": "move", "from": "/data/a", "path": "/no/no"}),
            "move operation does not apply: doc is missing destination path: /no/no: missing value",
        ),
        (
            json!({"op": "move", "from": "/data/a"}),
            "move operation failed to decode path: operation missing path field: missing value",
        ),
        (
            json!({"op": "copy", "path": "/data/x"}),
            "copy operation failed to decode from: operation, missing from field: missing value",
        ),
        (
            json!({"op": "copy", "from": "/no/no", "path": "/data/x"}),
            "copy operation does not apply: doc is missing from path: /no/no: missing value",
        ),
        (
            json!({"op": "copy", "from": "/data/a", "path": "/no/no"}),
            "copy operation does not apply: doc is missing destination path: /no/no: missing value",
        ),
        (
            json!({"op": "copy", "from": "/metadata/finalizers/5", "path": "/x"}),
            "error in copy for from: '/metadata/finalizers/5': Unable to access invalid index: 5: invalid index referenced",
        ),
        (
            json!({"op": "copy", "from": "/data/a", "path": "/metadata/finalizers/x"}),
            "error while adding value during copy: value was not a proper array index: 'x': strconv.Atoi: parsing \"x\": invalid syntax",
        ),
        (json!({"op": "bogus", "path": "/data/x"}), "Unexpected kind: bogus"),
        (json!({"path": "/data/x"}), "Unexpected kind: unknown"),
        (json!(null), "Unexpected kind: unknown"),
    ] {
        assert_eq!(error(&json!([patch])), message);
    }
}

#[test]
fn a_failing_operation_fails_the_patch() {
    let patch = json!([{"op": "add", "path": "/data/z", "value": 1}, {"op": "remove", "path": "/data/no"}]);
    assert!(matches!(
        apply_json_patch(&config_map(), patch.to_string().as_bytes()),
        Err(JsonPatchError::Apply(_))
    ));
    let patch = json!([{"op": "test", "path": "/data/a", "value": 1}]);
    assert_eq!(
        apply_json_patch(&config_map(), patch.to_string().as_bytes()),
        Err(JsonPatchError::TestFailed { path: "/data/a".to_owned() })
    );
}

#[test]
fn the_size_of_copies_is_limited() {
    let document = json!({"a": "x".repeat(MAX_COPIED_BYTES / 2)});
    let copy = json!({"op": "copy", "from": "/a", "path": "/b"});
    assert!(apply(&document, &json!([copy])).is_ok());
    assert_eq!(
        apply(&document, &json!([copy, copy])).unwrap_err(),
        "Unable to complete the copy, the accumulated size increase of copy is 3145732, exceeding the limit 3145728"
    );
}

/// Nested objects with one field each.
fn nested(depth: usize) -> Value {
    (1..depth).fold(json!({}), |inner, _| json!({"a": inner}))
}

/// The nesting depth.
fn depth(value: &Value) -> usize {
    let below = match value {
        Value::Array(items) => items.iter().map(depth).max(),
        Value::Object(fields) => fields.values().map(depth).max(),
        _ => return 0,
    };
    1 + below.unwrap_or_default()
}

#[test]
fn no_operation_makes_the_document_too_deep() {
    let document = nested(MAX_DEPTH / 2);
    let leaf = "/a".repeat(MAX_DEPTH / 2);
    let add = json!({"op": "add", "path": leaf, "value": nested(MAX_DEPTH / 2)});
    let deepest = apply(&document, &json!([add])).unwrap();
    assert_eq!(depth(&deepest), MAX_DEPTH);

    let below = "/a".repeat(MAX_DEPTH);
    for (operation, error) in [
        (json!({"op": "add", "path": below, "value": {}}), format!("error in add for path: '{below}': ")),
        (
            json!({"op": "replace", "path": leaf, "value": nested(MAX_DEPTH / 2 + 1)}),
            format!("error in replace for path: '{leaf}': "),
        ),
        (
            json!({"op": "copy", "from": "/a/a", "path": "/a/a/b"}),
            "error while adding value during copy: ".to_owned(),
        ),
    ] {
        assert_eq!(apply(&deepest, &json!([operation])).unwrap_err(), format!("{error}exceeded max depth"));
    }
    let wide = json!({"a": nested(MAX_DEPTH - 1), "b": {"c": {}}});
    assert_eq!(
        apply(&wide, &json!([{"op": "move", "from": "/a", "path": "/b/c/d"}])).unwrap_err(),
        "error in move for path: '/b/c/d': exceeded max depth"
    );
    // A move that keeps the depth is allowed.
    assert!(apply(&wide, &json!([{"op": "move", "from": "/a", "path": "/b"}])).is_ok());
    let scalar = json!({"op": "add", "path": below, "value": "x"});
    assert!(apply(&deepest, &json!([scalar])).is_ok());
}

#[test]
fn the_total_work_of_a_patch_is_limited() {
    let long = json!({"list": vec![0; 200_000], "b": {}});
    let first = "/list/0";
    for operations in [
        vec![json!({"op": "add", "path": first, "value": 1})],
        vec![json!({"op": "remove", "path": first}), json!({"op": "add", "path": first, "value": 1})],
        vec![
            json!({"op": "move", "from": "/list", "path": "/b/c"}),
            json!({"op": "move", "from": "/b/c", "path": "/list"}),
        ],
    ] {
        let patch = Value::Array(operations.iter().cycle().take(2_000).cloned().collect());
        let error = apply(&long, &patch).unwrap_err();
        assert!(error.ends_with("the patch moves more than 100000000 values"), "{error}");
    }
    // Appending to a list shifts nothing.
    let append = json!({"op": "add", "path": "/list/-", "value": 1});
    assert!(apply(&long, &Value::Array(vec![append; 2_000])).is_ok());
}

#[test]
fn too_many_operations_are_rejected() {
    let patch = |count: usize| format!("[{}]", vec!["null"; count].join(","));
    assert!(JsonPatch::decode(patch(MAX_OPERATIONS).as_bytes()).is_ok());
    assert_eq!(
        JsonPatch::decode(patch(MAX_OPERATIONS + 1).as_bytes()).unwrap_err().to_string(),
        "The allowed maximum operations in a JSON patch is 10000, got 10001"
    );
}

#[test]
fn the_check_rejects_anything_but_a_list_of_operations() {
    for (patch, message) in [
        ("{}", "json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"),
        ("\"x\"", "json: cannot unmarshal string into Go value of type []handlers.jsonPatchOp"),
        ("[1]", "json: cannot unmarshal number into Go value of type handlers.jsonPatchOp"),
        ("[[]]", "json: cannot unmarshal array into Go value of type handlers.jsonPatchOp"),
        ("[{\"op\":1}]", "json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string"),
        (
            "[{\"path\":[],\"op\":1}]",
            "json: cannot unmarshal array into Go struct field jsonPatchOp.path of type string",
        ),
        (
            "[{\"op\":true,\"op\":\"add\"}]",
            "json: cannot unmarshal bool into Go struct field jsonPatchOp.op of type string",
        ),
        (
            "[{\"value\":[1e999]}]",
            "json: cannot unmarshal number 1e999 into Go struct field jsonPatchOp.value of type float64",
        ),
        ("", "unexpected end of JSON input"),
        ("[", "unexpected end of JSON input"),
    ] {
        let error = check_json_patch(patch.as_bytes()).expect_err(patch);
        assert_eq!(error, JsonPatchError::Decode(format!("error decoding patch: {message}")));
    }
}

#[test]
fn the_check_reports_unknown_and_duplicate_fields_in_document_order() {
    let patch = r#"[{"op":"add","path":"/x","value":{"a":[{"b":1,"b":2}]},"extra":{"z":1,"z":2},"op":"add","OP":1},null]"#;
    assert_eq!(
        check_json_patch(patch.as_bytes()).unwrap(),
        [
            "json patch duplicate field \"[0].value.a[0].b\"",
            "json patch unknown field \"[0].extra\"",
            "json patch duplicate field \"[0].op\"",
            "json patch unknown field \"[0].OP\"",
        ]
    );
    assert!(check_json_patch(b"null").unwrap().is_empty());
}

#[test]
fn decoding_without_the_check_has_different_messages() {
    for (patch, message) in [
        ("{}", "json: cannot unmarshal object into Go value of type jsonpatch.Patch"),
        ("[1]", "json: cannot unmarshal number into Go value of type jsonpatch.Operation"),
        ("[", "unexpected end of JSON input"),
    ] {
        assert_eq!(JsonPatch::decode(patch.as_bytes()).expect_err(patch).to_string(), message);
    }
    assert!(JsonPatch::decode(b"null").unwrap().is_empty());
}

/// Operations on nested paths that build on each other.
fn digging() -> impl Strategy<Value = Value> {
    let path = || (1..MAX_DEPTH).prop_map(|length| "/a".repeat(length));
    let op = prop::sample::select(vec!["add", "replace", "copy", "move"]);
    (op, path(), path(), 1..MAX_DEPTH - 2).prop_map(
        |(op, path, from, value)| json!({"op": op, "path": path, "from": from, "value": nested(value)}),
    )
}

proptest! {
    // Deep documents are slow to build.
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_document_never_exceeds_the_depth_limit(operations in prop::collection::vec(digging(), 1..8)) {
        // Apply each operation as its own patch, because one failure fails a whole patch.
        let mut document = nested(MAX_DEPTH / 2);
        for operation in operations {
            if let Ok(patched) = apply(&document, &json!([operation])) {
                prop_assert!(depth(&patched) <= MAX_DEPTH);
                document = patched;
            }
        }
    }
}

proptest! {
    #[test]
    fn added_values_can_be_tested_and_removed(key in "[a-z~/ ]{1,6}", value in "[a-z]{0,4}") {
        prop_assume!(!config_map()["data"].as_object().unwrap().contains_key(&key));
        let path = format!("/data/{}", key.replace('~', "~0").replace('/', "~1"));
        let patch = json!([
            {"op": "add", "path": path, "value": value},
            {"op": "test", "path": path, "value": value},
            {"op": "remove", "path": path},
        ]);
        prop_assert_eq!(apply(&config_map(), &patch), Ok(config_map()));
    }

    #[test]
    fn no_operation_panics(
        op in "add|remove|replace|move|copy|test",
        path in "(/|metadata|finalizers|data|-?[0-9]|-|~[01]?){0,6}",
        from in "(/|metadata|finalizers|data|-?[0-9]|-){0,6}",
    ) {
        let _ = apply(&config_map(), &json!([{"op": op, "path": path, "from": from, "value": {"x": null}}]));
    }
}
