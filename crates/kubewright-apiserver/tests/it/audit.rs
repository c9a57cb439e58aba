//! Audit events.

use std::sync::{Arc, Mutex};

use kubewright_apiserver::audit::{Audit, Audited};
use kubewright_apiserver::{ApiServer, Options};
use serde_json::{Value, json};

use crate::webhooks::hook::{Hook, review};
use crate::webhooks::{CONFIG_MAPS, configure, create_config_map, send};
use crate::world::options;

#[derive(Default)]
struct Recorder(Mutex<Vec<Audited>>);

impl Audit for Recorder {
    fn record(&self, request: Audited) {
        self.0.lock().unwrap().push(request);
    }
}

impl Recorder {
    fn last(&self) -> Audited {
        self.0.lock().unwrap().last().cloned().unwrap()
    }
}

fn audited() -> (ApiServer, Arc<Recorder>) {
    let recorder = Arc::new(Recorder::default());
    let audit: Arc<dyn Audit> = recorder.clone();
    (ApiServer::new(Options { audit: Some(audit), ..options() }), recorder)
}

#[tokio::test]
async fn an_event_has_the_metadata_of_the_request() {
    let (server, recorder) = audited();
    assert_eq!(create_config_map(&server, "a").await.0, 201);
    let mut event = recorder.last().event;
    let id = event["auditID"].take();
    assert_eq!(id.as_str().map(str::len), Some(36));
    for time in ["requestReceivedTimestamp", "stageTimestamp"] {
        let time = event[time].take();
        assert!(time.as_str().unwrap().starts_with("2026-01-01T00:00:"), "{time}");
    }
    let expected = json!({
        "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata", "auditID": null,
        "stage": "ResponseComplete", "requestURI": CONFIG_MAPS, "verb": "create",
        "user": {"username": "admin", "groups": ["system:masters", "system:authenticated"]},
        "userAgent": "test/1.0",
        "objectRef": {"resource": "configmaps", "namespace": "default", "apiVersion": "v1"},
        "responseStatus": {"metadata": {}, "code": 201},
        "requestReceivedTimestamp": null, "stageTimestamp": null,
        "annotations": {"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": ""},
    });
    assert_eq!(event, expected);

    let (status, _, _) = send(&server, "GET", &format!("{CONFIG_MAPS}/missing"), &Value::Null).await;
    assert_eq!(status, 404);
    let event = recorder.last().event;
    assert_eq!(event["responseStatus"]["reason"], "NotFound");
    assert_eq!(event["responseStatus"]["message"], "configmaps \"missing\" not found");
    assert_eq!(event["objectRef"]["name"], "missing");
}

#[tokio::test]
async fn a_list_of_one_object_has_its_name() {
    let (server, recorder) = audited();
    for (selector, name) in [("metadata.name%3Da", "a"), ("metadata.namespace%3Ddefault", "")] {
        let path = format!("{CONFIG_MAPS}?fieldSelector={selector}");
        assert_eq!(send(&server, "GET", &path, &Value::Null).await.0, 200);
        let last = recorder.last();
        assert_eq!((last.verb.as_str(), last.name.as_str()), ("list", name));
        assert_eq!(last.event["objectRef"]["name"].as_str().unwrap_or_default(), name);
    }
}

#[tokio::test]
async fn webhooks_annotate_the_event() {
    let (server, recorder) = audited();
    let hook = Hook::start(|path, request| {
        let allowed = path != "/deny";
        Some(review(request, json!({"allowed": allowed, "auditAnnotations": {"seen": path}})))
    })
    .await;
    configure(&server, "Validating", "v", hook.client("/allow"), json!({})).await;
    assert_eq!(create_config_map(&server, "a").await.0, 201);
    let annotations = recorder.last().annotations;
    assert_eq!(annotations.get("v.example.com/seen").map(String::as_str), Some("/allow"), "{annotations:?}");
    // The annotations of a denied request are kept, too.
    configure(&server, "Validating", "w", hook.client("/deny"), json!({})).await;
    assert_eq!(create_config_map(&server, "b").await.0, 400);
    let last = recorder.last();
    assert_eq!(last.event["annotations"]["w.example.com/seen"], "/deny");
    assert_eq!(last.event["responseStatus"]["code"], 400);
}

#[tokio::test]
async fn policies_annotate_the_event() {
    let (server, recorder) = audited();
    let registration = "/apis/admissionregistration.k8s.io/v1";
    let policy = json!({"metadata": {"name": "p"}, "spec": {
        "matchConstraints": {"resourceRules": [{
            "apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"],
        }]},
        "validations": [{"expression": "false", "message": "never"}],
        "auditAnnotations": [{"key": "size", "valueExpression": "'entries: ' + string(size(object.data))"}],
    }});
    let path = format!("{registration}/validatingadmissionpolicies");
    assert_eq!(send(&server, "POST", &path, &policy).await.0, 201);
    let binding =
        json!({"metadata": {"name": "b"}, "spec": {"policyName": "p", "validationActions": ["Audit"]}});
    let path = format!("{registration}/validatingadmissionpolicybindings");
    assert_eq!(send(&server, "POST", &path, &binding).await.0, 201);
    assert_eq!(create_config_map(&server, "a").await.0, 201, "Audit does not deny");
    let annotations = recorder.last().annotations;
    assert_eq!(annotations.get("p/size").map(String::as_str), Some("entries: 1"), "{annotations:?}");
    let failure = annotations.get("validation.policy.admission.k8s.io/validation_failure").unwrap();
    let failure: Value = serde_json::from_str(failure).unwrap();
    assert_eq!(failure[0]["message"], "never");
    assert_eq!((&failure[0]["policy"], &failure[0]["binding"]), (&json!("p"), &json!("b")));
    assert_eq!(failure[0]["validationActions"], json!(["Audit"]));
}

#[tokio::test]
async fn the_first_value_of_an_annotation_is_kept() {
    let (server, recorder) = audited();
    let registration = "/apis/admissionregistration.k8s.io/v1";
    for name in ["a", "b"] {
        let policy = json!({"metadata": {"name": name}, "spec": {
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"],
            }]},
            "validations": [{"expression": "false", "message": name}],
        }});
        let path = format!("{registration}/validatingadmissionpolicies");
        assert_eq!(send(&server, "POST", &path, &policy).await.0, 201);
        let binding =
            json!({"metadata": {"name": name}, "spec": {"policyName": name, "validationActions": ["Audit"]}});
        let path = format!("{registration}/validatingadmissionpolicybindings");
        assert_eq!(send(&server, "POST", &path, &binding).await.0, 201);
    }
    assert_eq!(create_config_map(&server, "c").await.0, 201);
    let annotations = recorder.last().annotations;
    let failure = annotations.get("validation.policy.admission.k8s.io/validation_failure").unwrap();
    let failure: Value = serde_json::from_str(failure).unwrap();
    assert_eq!(failure[0]["policy"], "a");
}

#[tokio::test]
async fn pod_security_annotates_the_event() {
    let (server, recorder) = audited();
    let pods = "/api/v1/namespaces/default/pods";
    let pod = |name: &str| {
        json!({"metadata": {"name": name}, "spec": {
            "hostNetwork": true, "containers": [{"name": "c", "image": "i"}],
        }})
    };
    let prefix = "pod-security.kubernetes.io/";
    let annotation = |name: &str| recorder.last().annotations.get(&format!("{prefix}{name}")).cloned();
    assert_eq!(send(&server, "POST", pods, &pod("a")).await.0, 201);
    assert_eq!(annotation("enforce-policy").as_deref(), Some("privileged:latest"));

    // The audit level is evaluated for rejected pods, too.
    let namespace = json!({"metadata": {"name": "n", "labels": {
        format!("{prefix}enforce"): "baseline", format!("{prefix}audit"): "restricted",
    }}});
    assert_eq!(send(&server, "POST", "/api/v1/namespaces", &namespace).await.0, 201);
    let (status, _, _) = send(&server, "POST", "/api/v1/namespaces/n/pods", &pod("a")).await;
    assert_eq!(status, 403);
    assert_eq!(annotation("enforce-policy").as_deref(), Some("baseline:latest"));
    let violations = annotation("audit-violations").unwrap();
    assert!(violations.starts_with("would violate PodSecurity \"restricted:latest\": "), "{violations}");
    assert_eq!(annotation("error"), None);
}
