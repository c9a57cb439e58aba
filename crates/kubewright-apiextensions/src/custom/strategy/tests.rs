//! Custom resources end to end: decode, prepare, validate, read.

use super::*;
use crate::custom::{decode, read};
use serde_json::json;

fn definition() -> CrdValidation {
    CrdValidation::compile(&json!({"spec": {"group": "g.io", "scope": "Namespaced", "names": {"kind": "Widget"}, "versions": [
        {"name": "v1", "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}},
         "schema": {"openAPIV3Schema": {"type": "object", "properties": {
            "spec": {"type": "object", "default": {}, "properties": {
                "a": {"type": "string", "maxLength": 3}, "n": {"type": "integer"}, "d": {"type": "string", "default": "D"},
                "s": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}}},
            "status": {"type": "object", "properties": {"n": {"type": "integer"}, "p": {"type": "string"}}}}}}},
        {"name": "v2", "schema": {"openAPIV3Schema": {"type": "object", "properties": {
            "spec": {"type": "object", "properties": {"a": {"type": "string"}, "e": {"type": "string", "default": "E"}}}}}}},
    ]}}))
    .unwrap()
}

fn widget(spec: Value) -> Value {
    let meta = json!({"name": "w", "namespace": "ns", "uid": "u", "resourceVersion": "1", "generation": 1});
    let mut object = json!({"apiVersion": "g.io/v1", "kind": "Widget", "metadata": meta});
    object["spec"] = spec;
    object
}

fn texts(errors: &ErrorList) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn a_body_is_decoded_pruned_and_defaulted() {
    let body = br#"{"apiVersion":"g.io/v1","kind":"Widget","metadata":{"name":"w","nope":1},"zz":1,"spec":{"a":"x","a":"y","b":1}}"#;
    let decoded = decode(&definition(), body).unwrap();
    assert_eq!(
        decoded.value,
        json!({"apiVersion": "g.io/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"a": "y", "d": "D"}})
    );
    assert_eq!(
        decoded.strict,
        [
            r#"duplicate field "spec.a""#,
            r#"unknown field "metadata.nope""#,
            r#"unknown field "spec.b""#,
            r#"unknown field "zz""#
        ]
    );
}

#[test]
fn objects_of_other_kinds_are_rejected() {
    let error = |body: &str| decode(&definition(), body.as_bytes()).unwrap_err().to_string();
    assert_eq!(error("{\"a\":1}"), "Object 'Kind' is missing in '{\"a\":1}'");
    assert_eq!(error("null"), "Object 'Kind' is missing in 'null'");
    assert_eq!(
        error(r#"{"apiVersion":"g.io/v1","kind":"Widget","metadata":{"labels":{"a":1}}}"#),
        "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string"
    );
    let other = decode(&definition(), br#"{"apiVersion":"g.io/v1","kind":"Gadget","x":1}"#).unwrap();
    assert_eq!(other.value["x"], json!(1), "another kind is not pruned");
    assert_eq!(
        texts(&validate_create(&definition(), "v1", &other.value)),
        [r#"kind: Invalid value: "Gadget": must be Widget"#]
    );
}

#[test]
fn a_new_object_has_no_status_and_generation_one() {
    let definition = definition();
    let mut object = widget(json!({}));
    object["status"] = json!({"p": "x"});
    object["metadata"]["generation"] = json!(9);
    prepare_create(&definition.versions["v1"], &mut object);
    assert_eq!(object, widget(json!({})));
}

#[test]
fn the_generation_ignores_metadata_and_status() {
    let definition = definition();
    let version = &definition.versions["v1"];
    let mut old = widget(json!({"a": "x"}));
    old["status"] = json!({"p": "kept"});
    let mut new = widget(json!({"a": "x"}));
    new["status"] = json!({"p": "ignored"});
    new["metadata"]["labels"] = json!({"a": "b"});
    prepare_update(version, &mut new, &old);
    assert_eq!((new.int_at("metadata.generation"), new.str_at("status.p")), (Some(1), "kept"));
    let mut new = widget(json!({"a": "y"}));
    prepare_update(version, &mut new, &old);
    assert_eq!(new.int_at("metadata.generation"), Some(2));
}

#[test]
fn a_status_update_changes_the_status_only() {
    let mut old = widget(json!({"a": "x"}));
    old["metadata"]["managedFields"] = json!([{"manager": "old"}]);
    let mut new = widget(json!({"a": "changed"}));
    new["metadata"]["labels"] = json!({"a": "b"});
    new["metadata"]["managedFields"] = json!([{"manager": "new"}]);
    new["status"] = json!({"p": "x"});
    prepare_status_update(&mut new, &old);
    let mut expected = old.clone();
    expected["metadata"]["managedFields"] = json!([{"manager": "new"}]);
    expected["status"] = json!({"p": "x"});
    assert_eq!(new, expected);
}

#[test]
fn status_errors_have_paths_relative_to_the_status() {
    let old = widget(json!({"a": "too long but not looked at"}));
    let mut new = old.clone();
    new["status"] = json!({"n": "x"});
    assert_eq!(
        texts(&validate_status(&definition(), "v1", &new, &old)),
        [
            r#"status.n: Invalid value: "string": n in body must be of type integer: "string""#,
            ".status.n: Invalid value: 0: .status.n accessor error: x is of the type string, expected int64"
        ]
    );
}

#[test]
fn an_update_must_not_add_errors() {
    let definition = definition();
    let old = widget(json!({"a": "too long", "s": ["x", "x"]}));
    let mut new = old.clone();
    new["spec"]["d"] = json!("changed");
    assert!(validate_replace(&definition, "v1", &new, &old).is_empty());
    new["spec"]["a"] = json!("longer yet");
    assert_eq!(
        texts(&validate_replace(&definition, "v1", &new, &old)),
        ["spec.a: Too long: may not be more than 3 bytes"]
    );
    assert_eq!(
        texts(&validate_create(&definition, "v1", &old)),
        ["spec.a: Too long: may not be more than 3 bytes", r#"spec.s[1]: Duplicate value: "x""#]
    );
}

#[test]
fn cel_rules_are_skipped_for_structural_errors() {
    let long = FieldError::too_long(&Path::new("a"), 1);
    assert_eq!(
        blocks_rules(&[long]).unwrap().to_string(),
        "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"
    );
    assert_eq!(blocks_rules(&[FieldError::invalid(&Path::new("a"), 1, "no")]), None);
}

#[test]
fn new_finalizers_cause_warnings() {
    let object = |finalizers: Value| json!({"metadata": {"finalizers": finalizers}});
    let text = "to avoid accidental conflicts with other finalizer writers";
    assert_eq!(
        warnings(&object(json!(["plain", "a.b", "orphan", "a.b/c"])), None),
        [
            format!(
                "metadata.finalizers: \"a.b\": prefer a domain-qualified finalizer name including a path (/) {text}"
            ),
            format!("metadata.finalizers: \"plain\": prefer a domain-qualified finalizer name {text}"),
        ]
    );
    assert!(warnings(&object(json!(["plain"])), Some(&object(json!(["plain"])))).is_empty());
}

#[test]
fn reading_defaults_in_the_stored_version_and_converts() {
    let definition = definition();
    let stored = widget(json!({"a": "x", "n": null}));
    assert_eq!(read(&definition, stored.clone(), "v1").unwrap()["spec"], json!({"a": "x", "d": "D"}));
    let converted = read(&definition, stored, "v2").unwrap();
    assert_eq!((converted.str_at("apiVersion"), &converted["spec"]), ("g.io/v2", &json!({"a": "x"})));
    let mut lost = widget(json!({}));
    lost["apiVersion"] = json!("g.io/v0");
    assert_eq!(
        read(&definition, lost, "v1").unwrap_err().to_string(),
        "request to convert CR from an invalid group/version: g.io/v0"
    );
}
