//! Compares defaults with recorded responses of kube-apiserver.

mod services;
mod workloads;

use serde_json::{Value, json};

use super::apply;
use kubewright_apimachinery::gvk::Gvk;

fn defaulted(mut object: Value) -> Value {
    let text = object.clone();
    apply(Gvk::of(&text), &mut object);
    let once = object.clone();
    apply(Gvk::of(&text), &mut object);
    assert_eq!(object, once, "defaulting is idempotent");
    object
}

#[test]
fn a_namespace_has_its_name_as_a_label() {
    let object = defaulted(json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "a", "labels": {"kubernetes.io/metadata.name": "other", "x": "y"}}
    }));
    assert_eq!(object["metadata"]["labels"], json!({"kubernetes.io/metadata.name": "a", "x": "y"}));
    assert_eq!(object["status"], json!({"phase": "Active"}));
}

#[test]
fn string_data_of_a_secret_becomes_data() {
    let object = defaulted(json!({
        "apiVersion": "v1", "kind": "Secret", "data": {"a": "YQ==", "b": "Yg=="}, "stringData": {"b": "é", "c": ""}
    }));
    assert_eq!(
        object,
        json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": {"a": "YQ==", "b": "w6k=", "c": ""}})
    );
}

#[test]
fn container_limits_are_derived_from_each_other() {
    let object = defaulted(json!({
        "apiVersion": "v1", "kind": "LimitRange", "spec": {"limits": [
            {"type": "Container", "default": {"cpu": "500m"}, "max": {"cpu": "1"}},
            {"type": "Container", "min": {"memory": "1Mi"}, "max": {"cpu": "1"}},
            {"type": "Pod", "max": {"memory": "1Gi"}}
        ]}
    }));
    assert_eq!(
        object["spec"]["limits"],
        json!([
            {"type": "Container", "default": {"cpu": "500m"}, "defaultRequest": {"cpu": "500m"}, "max": {"cpu": "1"}},
            {"type": "Container", "min": {"memory": "1Mi"}, "max": {"cpu": "1"}, "default": {"cpu": "1"},
             "defaultRequest": {"cpu": "1", "memory": "1Mi"}},
            {"type": "Pod", "max": {"memory": "1Gi"}}
        ])
    );
}

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
fn a_webhook_matches_everything_and_has_a_timeout_of_ten_seconds() {
    let object = defaulted(json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "webhooks": [{
            "name": "a.example.com", "clientConfig": {"service": {"name": "s", "namespace": "n"}},
            "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}]
        }]
    }));
    assert_eq!(
        object["webhooks"][0],
        json!({
            "name": "a.example.com", "clientConfig": {"service": {"name": "s", "namespace": "n", "port": 443}},
            "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"],
                       "scope": "*"}],
            "failurePolicy": "Fail", "matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {},
            "timeoutSeconds": 10, "reinvocationPolicy": "Never"
        })
    );
}

#[test]
fn subjects_of_a_binding_get_the_api_group_of_their_kind() {
    let object = defaulted(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "roleRef": {"apiGroup": "", "kind": "Role", "name": "r"},
        "subjects": [{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s", "namespace": "n"}]
    }));
    assert_eq!(object["roleRef"]["apiGroup"], "rbac.authorization.k8s.io");
    assert_eq!(
        object["subjects"],
        json!([
            {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "u"},
            {"kind": "ServiceAccount", "name": "s", "namespace": "n"}
        ])
    );
}

#[test]
fn a_priority_level_gets_queuing_defaults() {
    let object = defaulted(json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "PriorityLevelConfiguration",
        "spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Queue", "queuing": {}}}}
    }));
    assert_eq!(
        object["spec"]["limited"],
        json!({
            "nominalConcurrencyShares": 30, "lendablePercent": 0,
            "limitResponse": {"type": "Queue", "queuing": {"handSize": 8, "queues": 64, "queueLengthLimit": 50}}
        })
    );
}

#[test]
fn a_device_request_defaults_to_one_device() {
    let object = defaulted(json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "spec": {"devices": {"requests": [
            {"name": "a", "exactly": {"deviceClassName": "c"}},
            {"name": "b", "firstAvailable": [{"name": "s", "deviceClassName": "c", "allocationMode": "All"}]}
        ]}}
    }));
    assert_eq!(
        object["spec"]["devices"]["requests"],
        json!([
            {"name": "a", "exactly": {"deviceClassName": "c", "allocationMode": "ExactCount", "count": 1}},
            {"name": "b", "firstAvailable": [{"name": "s", "deviceClassName": "c", "allocationMode": "All"}]}
        ])
    );
}
