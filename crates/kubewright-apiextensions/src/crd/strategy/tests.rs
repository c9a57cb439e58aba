//! Strategy of CRDs: defaulting, create, update, status and deletion.

use serde_json::{Value, json};

use super::*;

fn widgets() -> Value {
    json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "storage": false}, {"name": "v2", "storage": true}]
        }
    })
}

#[test]
fn names_default_from_the_kind() {
    let mut object = widgets();
    set_defaults(&mut object);
    assert_eq!(
        object.at("spec.names"),
        &json!({"plural": "widgets", "kind": "Widget", "singular": "widget", "listKind": "WidgetList"})
    );
    assert_eq!(object.at("spec.conversion"), &json!({"strategy": "None"}));
    assert_eq!(object.at("status.storedVersions"), &json!(["v2"]));
    let before = object.clone();
    set_defaults(&mut object);
    assert_eq!(object, before, "defaults stay what they are");
}

#[test]
fn a_new_crd_has_an_empty_status() {
    let mut object = widgets();
    object.set_at("status", json!({"storedVersions": ["v0"], "conditions": [{"type": "Established"}]}));
    prepare_create(&mut object);
    assert_eq!(
        object.at("status"),
        &json!({"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": ["v2"]})
    );
    assert_eq!(object.int_at("metadata.generation"), Some(1));
}

#[test]
fn an_update_increments_the_generation_and_keeps_stored_versions() {
    let mut old = widgets();
    prepare_create(&mut old);
    let mut same = old.clone();
    same.set_at("status.storedVersions", json!([]));
    prepare_update(&mut same, &old);
    assert_eq!(same, old);
    let mut new = old.clone();
    new.set_at("spec.versions", json!([{"name": "v2"}, {"name": "v3", "storage": true}]));
    prepare_update(&mut new, &old);
    assert_eq!(new.int_at("metadata.generation"), Some(2));
    assert_eq!(new.at("status.storedVersions"), &json!(["v2", "v3"]));
}

#[test]
fn a_status_update_keeps_the_spec() {
    let old = widgets();
    let mut new =
        json!({"metadata": {"labels": {"a": "b"}}, "spec": {}, "status": {"storedVersions": ["v2"]}});
    prepare_status(&mut new, &old);
    assert_eq!(new.at("spec"), old.at("spec"));
    assert_eq!(new.at("metadata.labels"), &json!({"a": "b"}));
}

#[test]
fn a_deleted_crd_waits_for_its_custom_resources() {
    let mut object = widgets();
    prepare_delete(&mut object, "t1");
    assert_eq!(object.at("metadata.finalizers"), &json!([FINALIZER]));
    assert_eq!(object.at("status.conditions")[0].str_at("reason"), "InstanceDeletionPending");
    instances_deleted(&mut object, false, "t2");
    assert_eq!(object.at("status.conditions")[0].str_at("reason"), "InstanceDeletionInProgress");
    let before = object.clone();
    prepare_delete(&mut object, "t3");
    assert_eq!(object, before);
    instances_deleted(&mut object, true, "t4");
    assert_eq!(
        object.at("status.conditions")[0],
        json!({
            "type": "Terminating", "status": "False", "lastTransitionTime": "t4",
            "reason": "InstanceDeletionCompleted", "message": "removed all instances"
        })
    );
}

#[test]
fn schemas_are_normalised_also_below_items() {
    let mut object = json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": {
        "type": "array",
        "items": {"type": "object", "required": [], "unknown": 1, "additionalProperties": {"type": "string", "enum": []}}
    }}}]}});
    complete(&mut object).unwrap();
    assert_eq!(
        object.at("spec.versions")[0].at("schema.openAPIV3Schema.items"),
        &json!({"type": "object", "additionalProperties": {"type": "string"}})
    );
}

#[test]
fn malformed_schemas_are_rejected() {
    let problem = |schema: Value| {
        let mut object = json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": schema}}]}});
        complete(&mut object).unwrap_err()
    };
    assert_eq!(problem(json!({"additionalProperties": 1})), "boolean or JSON schema expected");
    assert_eq!(
        problem(json!({"properties": {"a": {"items": {"type": 1}}}})),
        "json: cannot unmarshal number into Go struct field JSONSchemaProps.spec.versions.schema.openAPIV3Schema.properties.items.type of type string"
    );
}

#[test]
fn unsupported_formats_cause_one_warning() {
    let with = |format: &str| {
        json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": {"properties": {
            "a": {"type": "string", "format": format}, "b": {"type": "integer", "format": "int32"},
            "c": {"type": "string", "format": "date-time"}
        }}}}]}})
    };
    assert_eq!(warnings(&with("bogus"), None), ["unrecognized format \"bogus\""]);
    assert_eq!(warnings(&with("bogus"), Some(&with("bogus"))), [""; 0]);
    assert_eq!(warnings(&with("other"), Some(&with("bogus"))), ["unrecognized format \"other\""]);
}
