//! Tests of Namespace.

use serde_json::json;

use crate::strategy::prepare_subresource;
use crate::testing::{defaulted, prepared_for_create, prepared_for_update, status_errors};
use kubewright_apimachinery::gvk::Gvk;

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
fn a_new_namespace_is_active_and_has_the_kubernetes_finalizer() {
    let object = prepared_for_create(json!({
        "apiVersion": "v1", "kind": "Namespace", "spec": {"finalizers": ["example.com/x"]},
        "status": {"phase": "Terminating"}
    }));
    assert_eq!(object["spec"], json!({"finalizers": ["example.com/x", "kubernetes"]}));
    assert_eq!(object["status"], json!({"phase": "Active"}));
}

#[test]
fn finalizers_of_a_namespace_change_through_finalize_only() {
    let old = json!({
        "apiVersion": "v1", "kind": "Namespace", "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}
    });
    let mut new = json!({"apiVersion": "v1", "kind": "Namespace", "spec": {}, "status": {}});
    assert_eq!(prepared_for_update(new.clone(), &old), old);
    prepare_subresource(Gvk { group: "", version: "v1", kind: "Namespace" }, "finalize", &mut new, &old);
    assert_eq!(new["spec"], json!({}));
    assert_eq!(new["status"], json!({"phase": "Active"}));
}

#[test]
fn the_phase_of_a_namespace_must_match_its_deletion_timestamp() {
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "status": {"phase": "Bogus"}});
    assert_eq!(
        status_errors(&object, &object),
        ["status.Phase: Invalid value: \"Bogus\": may only be 'Active' if `deletionTimestamp` is empty"]
    );
}
