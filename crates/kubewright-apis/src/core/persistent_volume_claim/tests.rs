//! Tests of PersistentVolumeClaim.

use serde_json::{Value, json};

use crate::testing::{create_errors, prepared_for_create, update_errors};

#[test]
fn data_source_and_data_source_ref_are_synchronized() {
    let claim = |spec: Value| json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": spec});
    let object =
        prepared_for_create(claim(json!({"dataSource": {"kind": "PersistentVolumeClaim", "name": "x"}})));
    assert_eq!(object["spec"]["dataSourceRef"], json!({"kind": "PersistentVolumeClaim", "name": "x"}));
    let ignored =
        prepared_for_create(claim(json!({"dataSource": {"apiGroup": "a.io", "kind": "K", "name": "x"}})));
    assert_eq!(ignored["spec"], json!({}));
    let any =
        prepared_for_create(claim(json!({"dataSourceRef": {"apiGroup": "a.io", "kind": "K", "name": "x"}})));
    assert_eq!(any["spec"]["dataSource"], json!({"apiGroup": "a.io", "kind": "K", "name": "x"}));
}

#[test]
fn a_claim_needs_a_size_and_access_modes() {
    let claim = |spec: Value| json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": spec});
    assert_eq!(
        create_errors(&claim(json!({"resources": {}}))),
        [
            "spec.accessModes: Required value: at least 1 access mode is required",
            "spec.resources[storage]: Required value",
        ]
    );
    assert_eq!(
        create_errors(&claim(json!({"accessModes": ["X"], "resources": {"requests": {"storage": "0"}}}))),
        [
            "spec.accessModes: Unsupported value: \"X\": supported values: \"ReadOnlyMany\", \"ReadWriteMany\", \
             \"ReadWriteOnce\", \"ReadWriteOncePod\"",
            "spec.resources[storage]: Invalid value: \"0\": must be greater than zero",
        ]
    );
}

#[test]
fn a_changed_claim_is_rejected_with_a_diff() {
    let claim = |mode: &str| {
        json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "spec": {"accessModes": [mode], "resources": {"requests": {"storage": "1Gi"}}, "volumeMode": "Filesystem"},
            "status": {"phase": "Pending"}
        })
    };
    assert_eq!(
        update_errors(&claim("ReadOnlyMany"), &claim("ReadWriteOnce")),
        [
            "spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName \
          for bound claims\n@@ -1,6 +1,6 @@\n {\n  \"AccessModes\": [\n-  \"ReadWriteOnce\"\n+  \"ReadOnlyMany\"\n  ],\n  \
          \"Selector\": null,\n  \"Resources\": {\n"
        ]
    );
}

#[test]
fn a_bound_claim_can_grow_but_not_shrink() {
    let claim = |size: &str| {
        json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}},
            "status": {"phase": "Bound", "capacity": {"storage": "2Gi"}}
        })
    };
    assert!(update_errors(&claim("3Gi"), &claim("2Gi")).is_empty());
    assert_eq!(
        update_errors(&claim("1Gi"), &claim("2Gi")),
        ["spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"]
    );
}
