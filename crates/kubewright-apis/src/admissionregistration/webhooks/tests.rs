//! Tests of webhook configurations.

use serde_json::{Value, json};

use crate::testing::{create_errors, defaulted, prepared_for_create, prepared_for_update};

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
fn webhook_changes_increment_the_generation() {
    let kind = "ValidatingWebhookConfiguration";
    let object = |webhooks: Value| json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "webhooks": webhooks});
    let old = prepared_for_create(object(json!([{"name": "a"}])));
    assert_eq!(old["metadata"]["generation"], 1);
    let mut same = old.clone();
    same["metadata"]["labels"] = json!({"x": "y"});
    assert_eq!(prepared_for_update(same, &old)["metadata"]["generation"], 1);
    let mut other = old.clone();
    other["webhooks"] = json!([]);
    assert_eq!(prepared_for_update(other, &old)["metadata"]["generation"], 2);
}

#[test]
fn webhooks_are_validated() {
    let hook = |change: (&str, Value)| {
        let mut hook = json!({
            "name": "a.example.com", "clientConfig": {"url": "https://127.0.0.1/x"}, "sideEffects": "None",
            "admissionReviewVersions": ["v1"]
        });
        hook[change.0] = change.1;
        let kind = "ValidatingWebhookConfiguration";
        create_errors(
            &json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "webhooks": [hook]}),
        )
    };
    assert_eq!(
        hook(("name", "x".into())),
        [
            "webhooks[0].name: Invalid value: \"x\": should be a domain with at least three segments separated by dots"
        ]
    );
    assert_eq!(
        hook(("clientConfig", json!({"url": "https://x?y"}))),
        ["webhooks[0].clientConfig.url: Invalid value: \"y\": query parameters are not permitted in the URL"]
    );
    assert_eq!(
        hook(("sideEffects", Value::Null)),
        ["webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun"]
    );
    assert_eq!(
        hook(("admissionReviewVersions", json!(["v9"]))),
        [
            "webhooks[0].admissionReviewVersions: Invalid value: [\"v9\"]: must include at least one of v1, v1beta1"
        ]
    );
    assert_eq!(hook(("rules", json!([{}]))).len(), 4);
}
