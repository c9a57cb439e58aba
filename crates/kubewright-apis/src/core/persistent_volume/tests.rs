//! Tests of PersistentVolume.

use serde_json::json;

use crate::testing::{create_errors, defaulted};

#[test]
fn a_persistent_volume_defaults_to_retain_and_filesystem() {
    let object = defaulted(json!({
        "apiVersion": "v1", "kind": "PersistentVolume",
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
    }));
    assert_eq!(
        object["spec"],
        json!({
            "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"},
            "hostPath": {"path": "/x", "type": ""}, "persistentVolumeReclaimPolicy": "Retain",
            "volumeMode": "Filesystem"
        })
    );
}

#[test]
fn a_volume_needs_a_source_and_a_capacity() {
    let object =
        json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv"}, "spec": {}});
    assert_eq!(
        create_errors(&object),
        [
            "spec.accessModes: Required value",
            "spec.capacity: Required value",
            "spec.capacity: Unsupported value: null: supported values: \"storage\"",
            "spec: Required value: must specify a volume type",
        ]
    );
}
