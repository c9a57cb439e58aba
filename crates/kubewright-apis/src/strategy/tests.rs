//! Compares prepared objects with recordings of kube-apiserver.

mod services;
mod workloads;

use serde_json::{Value, json};

use super::{prepare_create, prepare_subresource, prepare_update, warnings};
use kubewright_apimachinery::gvk::Gvk;

fn created(mut object: Value) -> Value {
    let text = object.clone();
    prepare_create(Gvk::of(&text), &mut object);
    object
}

fn updated(mut new: Value, old: &Value) -> Value {
    let text = new.clone();
    prepare_update(Gvk::of(&text), &mut new, old);
    new
}

#[test]
fn a_new_namespace_is_active_and_has_the_kubernetes_finalizer() {
    let object = created(json!({
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
    assert_eq!(updated(new.clone(), &old), old);
    prepare_subresource(Gvk { group: "", version: "v1", kind: "Namespace" }, "finalize", &mut new, &old);
    assert_eq!(new["spec"], json!({}));
    assert_eq!(new["status"], json!({"phase": "Active"}));
}

#[test]
fn webhook_changes_increment_the_generation() {
    let kind = "ValidatingWebhookConfiguration";
    let object = |webhooks: Value| json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "webhooks": webhooks});
    let old = created(object(json!([{"name": "a"}])));
    assert_eq!(old["metadata"]["generation"], 1);
    let mut same = old.clone();
    same["metadata"]["labels"] = json!({"x": "y"});
    assert_eq!(updated(same, &old)["metadata"]["generation"], 1);
    let mut other = old.clone();
    other["webhooks"] = json!([]);
    assert_eq!(updated(other, &old)["metadata"]["generation"], 2);
}

#[test]
fn data_source_and_data_source_ref_are_synchronized() {
    let claim = |spec: Value| json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": spec});
    let object = created(claim(json!({"dataSource": {"kind": "PersistentVolumeClaim", "name": "x"}})));
    assert_eq!(object["spec"]["dataSourceRef"], json!({"kind": "PersistentVolumeClaim", "name": "x"}));
    let ignored = created(claim(json!({"dataSource": {"apiGroup": "a.io", "kind": "K", "name": "x"}})));
    assert_eq!(ignored["spec"], json!({}));
    let any = created(claim(json!({"dataSourceRef": {"apiGroup": "a.io", "kind": "K", "name": "x"}})));
    assert_eq!(any["spec"]["dataSource"], json!({"apiGroup": "a.io", "kind": "K", "name": "x"}));
}

#[test]
fn an_approval_only_changes_conditions() {
    let gvk = Gvk { group: "certificates.k8s.io", version: "v1", kind: "CertificateSigningRequest" };
    let old = json!({"spec": {"request": "eA==", "username": "u"}, "status": {}});
    let approved = json!([{"type": "Approved", "status": "True"}]);
    let mut new = json!({"spec": {}, "status": {"certificate": "eA==", "conditions": approved}});
    prepare_subresource(gvk, "approval", &mut new, &old);
    assert_eq!(
        new,
        json!({"spec": {"request": "eA==", "username": "u"}, "status": {"conditions": approved}})
    );
    let mut later = json!({"spec": {}, "status": {"certificate": "eA==", "conditions": [
        {"type": "Approved", "status": "True", "reason": "other"}
    ]}});
    prepare_subresource(gvk, "status", &mut later, &new);
    assert_eq!(later["status"], json!({"certificate": "eA==", "conditions": approved}));
}

#[test]
fn a_local_api_service_is_available_at_once() {
    let object =
        created(json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "spec": {}}));
    assert_eq!(object["status"]["conditions"][0]["reason"], "Local");
}

#[test]
fn tls_secrets_without_pem_cause_a_warning() {
    let gvk = Gvk { group: "", version: "v1", kind: "Secret" };
    let mut secret = json!({"type": "kubernetes.io/tls", "data": {"tls.crt": "YQ==", "tls.key": "Yg=="}});
    let texts = warnings(gvk, &secret, None);
    assert_eq!(texts, ["tls: failed to find any PEM data in certificate input"]);
    let pem = "-----BEGIN CERTIFICATE-----\nYQ==\n-----END CERTIFICATE-----\n";
    secret["data"]["tls.crt"] = kubewright_apimachinery::meta::bytes::encode(pem.as_bytes()).into();
    assert_eq!(warnings(gvk, &secret, None), ["tls: failed to find any PEM data in key input"]);
}
