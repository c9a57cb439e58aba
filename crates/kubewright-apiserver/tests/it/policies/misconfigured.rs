//! Policies that cannot be applied: the failure policy decides.

use kubewright_apiserver::ApiServer;
use serde_json::{Value, json};

use super::enforce;
use super::mutating::mutate;
use crate::webhooks::hook::Hook;
use crate::webhooks::{create_config_map, send};
use crate::world::server;

const UNKNOWN: &str = "failed to find resource referenced by paramKind: ";

#[tokio::test]
async fn an_unknown_param_kind_denies_before_bindings_are_matched() {
    for (api_version, shown) in [("v1", "/v1"), ("example.com/v1", "example.com/v1")] {
        for (failure_policy, expected) in [("Fail", 422), ("Ignore", 201)] {
            let server = server();
            let policy = json!({
                "failurePolicy": failure_policy,
                "paramKind": {"apiVersion": api_version, "kind": "Nosuch"},
                "validations": [{"expression": "true"}],
            });
            let nowhere = json!({"namespaceSelector": {"matchLabels": {"nosuch": "label"}}});
            enforce(&server, policy, json!({"matchResources": nowhere})).await;
            let (status, _, body) = create_config_map(&server, "a").await;
            assert_eq!(status, expected, "{failure_policy}: {body}");
            if status == 422 {
                let why = format!(
                    "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'p' denied request: failed to \
                     configure policy: {UNKNOWN}'{shown}, Kind=Nosuch'"
                );
                assert_eq!((&body["message"], &body["reason"]), (&json!(why), &json!("Invalid")));
            }
        }
    }
}

/// Unlike the error of an evaluation, the error of a configuration keeps the reason `Forbidden`.
#[tokio::test]
async fn a_misconfigured_mutating_policy_forbids_the_request() {
    let server = server();
    let patch = json!([{"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: 'remove', path: '/nosuch'}]"}}]);
    let more = json!({"paramKind": {"apiVersion": "v1", "kind": "Nosuch"}});
    mutate(&server, "p", &patch, &more).await;
    // The configuration errors of all policies come before evaluation errors.
    mutate(&server, "a", &patch, &json!({})).await;
    let (status, _, body) = create_config_map(&server, "a").await;
    let why = format!("policy \"p\" denied request: failed to configure policy: {UNKNOWN}'/v1, Kind=Nosuch'");
    assert_eq!(
        (status, &body["reason"], &body["message"]),
        (403, &json!("Forbidden"), &json!(why)),
        "{body}"
    );
    assert_eq!(body["details"]["causes"].as_array().unwrap().len(), 2, "{body}");
    // There is nothing to mutate in a deletion.
    let path = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings/";
    for name in ["a", "p"] {
        assert_eq!(send(&server, "DELETE", &format!("{path}{name}"), &Value::Null).await.0, 200);
    }
    assert_eq!(create_config_map(&server, "a").await.0, 201);
    let everything = json!({"matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
        "operations": ["*"], "resources": ["configmaps"]}]},
        "paramKind": {"apiVersion": "v1", "kind": "Nosuch"}});
    mutate(&server, "all", &patch, &everything).await;
    let path = "/api/v1/namespaces/default/configmaps/a";
    assert_eq!(send(&server, "DELETE", path, &Value::Null).await.0, 200);
}

/// A CRD whose storage version is v2, with a conversion webhook that always fails.
async fn define(server: &ApiServer, hook: &Hook) {
    let version = |name: &str, storage: bool| {
        json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": {
            "type": "object", "x-kubernetes-preserve-unknown-fields": true}}})
    };
    let definition = json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [version("v1", false), version("v2", true)],
            "conversion": {"strategy": "Webhook", "webhook": {
                "conversionReviewVersions": ["v1"], "clientConfig": hook.client("/")}},
        },
    });
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let (status, _, body) = send(server, "POST", path, &definition).await;
    assert_eq!(status, 201, "{body}");
}

#[tokio::test]
async fn a_failed_conversion_is_subject_to_the_failure_policy() {
    let hook = Hook::start(|_, request| {
        Some(json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
            "response": {"uid": request["uid"], "result": {"status": "Failed", "message": "cannot do this"}},
        }))
    })
    .await;
    let rules = json!({"resourceRules": [{"apiGroups": ["example.com"], "apiVersions": ["v1"],
        "operations": ["CREATE"], "resources": ["widgets"]}]});
    let why = "conversion webhook for example.com/v2, Kind=Widget failed: cannot do this";
    let path = "/apis/example.com/v2/namespaces/default/widgets";
    let widget = json!({"apiVersion": "example.com/v2", "kind": "Widget", "metadata": {"name": "a"}});
    for failure_policy in ["Fail", "Ignore"] {
        for mutating in [false, true] {
            let server = server();
            define(&server, &hook).await;
            let more = json!({"matchConstraints": rules, "failurePolicy": failure_policy});
            let expected = if mutating {
                let patch = json!([{"patchType": "ApplyConfiguration",
                    "applyConfiguration": {"expression": "Object{}"}}]);
                mutate(&server, "p", &patch, &more).await;
                (403, format!("policy \"p\" denied request: failed to configure policy: {why}"))
            } else {
                let mut policy = more;
                policy["validations"] = json!([{"expression": "true"}]);
                enforce(&server, policy, json!({})).await;
                let why = format!(
                    "widgets.example.com \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied \
                     request: failed to configure binding: failed to convert object version: {why}"
                );
                (422, why)
            };
            let (status, _, body) = send(&server, "POST", path, &widget).await;
            if failure_policy == "Fail" {
                assert_eq!((status, body["message"].as_str().unwrap()), (expected.0, &*expected.1));
            } else {
                assert_eq!(status, 201, "{body}");
            }
        }
    }
}

#[tokio::test]
async fn all_failed_mutations_are_reported() {
    let server = server();
    let remove = |path: &str| {
        let expression = format!("[JSONPatch{{op: 'remove', path: '{path}'}}]");
        json!({"patchType": "JSONPatch", "jsonPatch": {"expression": expression}})
    };
    mutate(&server, "p", &json!([remove("/one"), remove("/two")]), &json!({})).await;
    let (status, _, body) = create_config_map(&server, "a").await;
    assert_eq!((status, &body["reason"]), (403, &json!("Invalid")));
    let causes = body["details"]["causes"].as_array().unwrap();
    assert_eq!(causes.len(), 2, "{body}");
    assert_eq!(body["message"], causes[0]["message"]);
    for (cause, path) in causes.iter().zip(["/one", "/two"]) {
        assert!(cause["message"].as_str().unwrap().contains(path), "{body}");
    }
}
