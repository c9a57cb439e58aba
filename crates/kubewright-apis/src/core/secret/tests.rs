//! Tests of Secret.

use serde_json::{Value, json};

use crate::strategy::warnings;
use crate::testing::{create_errors, defaulted};
use kubewright_apimachinery::gvk::Gvk;

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
fn tls_secrets_without_pem_cause_a_warning() {
    let gvk = Gvk { group: "", version: "v1", kind: "Secret" };
    let mut secret = json!({"type": "kubernetes.io/tls", "data": {"tls.crt": "YQ==", "tls.key": "Yg=="}});
    let texts = warnings(gvk, &secret, None);
    assert_eq!(texts, ["tls: failed to find any PEM data in certificate input"]);
    let pem = "-----BEGIN CERTIFICATE-----\nYQ==\n-----END CERTIFICATE-----\n";
    secret["data"]["tls.crt"] = kubewright_apimachinery::meta::bytes::encode(pem.as_bytes()).into();
    assert_eq!(warnings(gvk, &secret, None), ["tls: failed to find any PEM data in key input"]);
}

#[test]
fn a_secret_must_have_the_keys_of_its_type() {
    let secret =
        |kind: &str, data: Value| json!({"apiVersion": "v1", "kind": "Secret", "type": kind, "data": data});
    assert_eq!(
        create_errors(&secret("kubernetes.io/tls", json!({"tls.crt": "YQ=="}))),
        ["data[tls.key]: Required value"]
    );
    assert_eq!(
        create_errors(&secret("kubernetes.io/basic-auth", json!({}))),
        ["data[username]: Required value", "data[password]: Required value"]
    );
    assert!(create_errors(&secret("kubernetes.io/basic-auth", json!({"password": ""}))).is_empty());
    assert_eq!(
        create_errors(&secret("kubernetes.io/dockerconfigjson", json!({".dockerconfigjson": "eA=="}))),
        [
            "data[.dockerconfigjson]: Invalid value: \"<secret contents redacted>\": invalid character 'x' looking for \
          beginning of value"
        ]
    );
    assert_eq!(
        create_errors(&secret("Opaque", json!({"..": "YQ=="}))),
        ["data[..]: Invalid value: \"..\": must not be '..'"]
    );
}
