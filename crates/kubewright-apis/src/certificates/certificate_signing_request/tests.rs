//! Tests of CertificateSigningRequest.

use serde_json::json;

use crate::strategy::prepare_subresource;
use crate::testing::row;
use kubewright_apimachinery::gvk::Gvk;

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
fn certificate_signing_requests_show_their_conditions() {
    let parts = json!({
        "spec": {"signerName": "s", "username": "u", "expirationSeconds": 3600},
        "status": {"conditions": [{"type": "Approved"}], "certificate": "eA=="},
    });
    assert_eq!(
        row("certificates.k8s.io/v1", "CertificateSigningRequest", parts),
        json!(["o", "60m", "s", "u", "60m", "Approved,Issued"])
    );
}
