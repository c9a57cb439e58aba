//! Defaulters, validators and raw handlers behind their paths.

use std::time::Duration;

use base64::Engine as _;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use k8s_openapi::api::apps::v1::Deployment;
use kubewright_runtime::metrics::Metrics;
use kubewright_runtime::webhook::{
    AdmissionHandler, AdmissionRequest, AdmissionResponse, Defaulter, Operation, RegisterError, Rejection,
    Validation, Validator, Webhooks, mutate_path, validate_path,
};
use serde_json::{Value, json};

use super::post;
use crate::operator::Log;

/// The rules of the tests: one to five replicas, a label, and no shrinking.
struct Rules;

impl Defaulter for Rules {
    type Object = Deployment;

    async fn default(&self, deployment: &mut Deployment, _: &AdmissionRequest) -> Result<(), Rejection> {
        deployment.spec.get_or_insert_default().replicas.get_or_insert(1);
        Ok(())
    }
}

impl Validator for Rules {
    type Object = Deployment;

    async fn validate_create(&self, new: &Deployment, v: &mut Validation<'_>) -> Result<(), Rejection> {
        let replicas = replicas(new);
        if !(1..=5).contains(&replicas) {
            v.invalid("spec.replicas", replicas, "must be between 1 and 5");
        }
        if new.metadata.labels.is_none() {
            v.required("metadata.labels", "");
        }
        if replicas == 1 {
            v.warn("one replica is not highly available");
        }
        Ok(())
    }

    async fn validate_update(
        &self,
        old: &Deployment,
        new: &Deployment,
        v: &mut Validation<'_>,
    ) -> Result<(), Rejection> {
        if replicas(new) < replicas(old) {
            v.forbidden("spec.replicas", "may not shrink");
        }
        Ok(())
    }

    async fn validate_delete(&self, _: &Deployment, v: &mut Validation<'_>) -> Result<(), Rejection> {
        match v.request().user_info.username.as_str() {
            "admin" => Ok(()),
            user => Err(Rejection::denied(format!("{user} may not delete Deployments"))),
        }
    }
}

fn replicas(deployment: &Deployment) -> i32 {
    deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1)
}

fn webhooks() -> Webhooks {
    let webhooks = Webhooks::new();
    webhooks.defaulter(mutate_path::<Deployment>(), Rules).expect("the path is free");
    webhooks.validator(validate_path::<Deployment>(), Rules).expect("the path is free");
    webhooks
}

fn review(operation: &str, request: &Value) -> Value {
    let mut whole = json!({
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": { "group": "apps", "version": "v1", "kind": "Deployment" },
        "resource": { "group": "apps", "version": "v1", "resource": "deployments" },
        "name": "web",
        "namespace": "default",
        "operation": operation,
        "userInfo": { "username": "eve", "groups": ["system:authenticated"] },
    });
    for (key, value) in request.as_object().expect("fields of a request") {
        whole[key] = value.clone();
    }
    json!({ "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": whole })
}

fn deployment(replicas: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": "web", "namespace": "default" },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { "app": "web" } },
            "template": { "metadata": { "labels": { "app": "web" } } },
            "fieldOfTheFuture": true,
        },
    })
}

const VALIDATE: &str = "/validate-apps-v1-deployment";
const MUTATE: &str = "/mutate-apps-v1-deployment";

#[tokio::test]
async fn a_defaulter_returns_a_patch_of_its_changes() {
    let mut object = deployment(&Value::Null);
    object["spec"].as_object_mut().expect("a spec").remove("replicas");
    let (status, answer) = post(&webhooks(), MUTATE, &review("CREATE", &json!({ "object": object }))).await;
    assert_eq!(status, 200);
    let response = &answer["response"];
    assert_eq!(response["allowed"], true);
    assert_eq!(response["uid"], "705ab4f5-6393-11e8-b7cc-42010a800002");
    assert_eq!(response["patchType"], "JSONPatch");
    let patch = base64::engine::general_purpose::STANDARD
        .decode(response["patch"].as_str().expect("a patch"))
        .expect("base64");
    let patch: Value = serde_json::from_slice(&patch).expect("JSON");
    assert_eq!(patch, json!([{ "op": "add", "path": "/spec/replicas", "value": 1 }]));

    // Without a change there is no patch, and deletes have no object.
    let (_, answer) =
        post(&webhooks(), MUTATE, &review("CREATE", &json!({ "object": deployment(&json!(2)) }))).await;
    assert_eq!(answer["response"]["patch"], Value::Null);
    let (_, answer) = post(&webhooks(), MUTATE, &review("DELETE", &json!({}))).await;
    assert_eq!(answer["response"]["allowed"], true);
}

#[tokio::test]
async fn all_field_errors_are_in_one_response() {
    let request = review("CREATE", &json!({ "object": deployment(&json!(10)) }));
    let (_, answer) = post(&webhooks(), VALIDATE, &request).await;
    assert_eq!(
        answer["response"],
        json!({
            "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
            "allowed": false,
            "status": {
                "metadata": {},
                "status": "Failure",
                "message": "Deployment.apps \"web\" is invalid: [spec.replicas: Invalid value: 10: must be between 1 and 5, \
                            metadata.labels: Required value]",
                "reason": "Invalid",
                "details": {
                    "name": "web",
                    "group": "apps",
                    "kind": "Deployment",
                    "causes": [
                        { "reason": "FieldValueInvalid", "message": "Invalid value: 10: must be between 1 and 5", "field": "spec.replicas" },
                        { "reason": "FieldValueRequired", "message": "Required value", "field": "metadata.labels" },
                    ],
                },
                "code": 422,
            },
        })
    );
}

#[tokio::test]
async fn updates_have_both_objects_and_deletes_have_the_old_one() {
    let (old, new) = (deployment(&json!(3)), deployment(&json!(2)));
    let request = review("UPDATE", &json!({ "object": new, "oldObject": old }));
    let (_, answer) = post(&webhooks(), VALIDATE, &request).await;
    let message = &answer["response"]["status"]["message"];
    assert_eq!(message, "Deployment.apps \"web\" is invalid: spec.replicas: Forbidden: may not shrink");

    let (_, answer) = post(&webhooks(), VALIDATE, &review("DELETE", &json!({ "oldObject": old }))).await;
    assert_eq!(answer["response"]["status"]["code"], 403);
    assert_eq!(answer["response"]["status"]["message"], "eve may not delete Deployments");
    let admin = json!({ "oldObject": old, "userInfo": { "username": "admin" } });
    let (_, answer) = post(&webhooks(), VALIDATE, &review("DELETE", &admin)).await;
    assert_eq!(answer["response"]["allowed"], true);
}

#[tokio::test]
async fn warnings_are_returned_with_allowed_and_denied_requests() {
    let mut object = deployment(&json!(1));
    let (_, answer) =
        post(&webhooks(), VALIDATE, &review("CREATE", &json!({ "object": object.clone() }))).await;
    assert_eq!(answer["response"]["allowed"], false);
    assert_eq!(answer["response"]["warnings"], json!(["one replica is not highly available"]));
    object["metadata"]["labels"] = json!({ "a": "b" });
    let (_, answer) = post(&webhooks(), VALIDATE, &review("CREATE", &json!({ "object": object }))).await;
    assert_eq!(answer["response"]["allowed"], true);
    assert_eq!(answer["response"]["warnings"], json!(["one replica is not highly available"]));
}

#[tokio::test]
async fn an_object_that_does_not_fit_the_type_is_a_bad_request() {
    let object = deployment(&json!("three"));
    let (status, answer) = post(&webhooks(), VALIDATE, &review("CREATE", &json!({ "object": object }))).await;
    assert_eq!((status, &answer["response"]["status"]["code"]), (200, &json!(400)));
    let message = answer["response"]["status"]["message"].as_str().expect("a message");
    assert!(
        message
            .starts_with("failed to decode object of the admission request: invalid type: string \"three\""),
        "{message}"
    );
}

#[tokio::test]
async fn an_invalid_review_gets_a_response_with_the_reason() {
    let webhooks = webhooks();
    let (status, answer) = post(&webhooks, VALIDATE, &json!({ "kind": "Pod", "apiVersion": "v1" })).await;
    assert_eq!(status, 200);
    assert_eq!(
        answer["response"]["status"]["message"],
        "expected an AdmissionReview of admission.k8s.io/v1 or v1beta1, got \"Pod\" of \"v1\""
    );
    assert_eq!(post(&webhooks, "/other", &json!({})).await.0, 404);
    assert_eq!(post(&webhooks, "/convert", &json!({})).await.0, 404);

    let get = http::Request::get(VALIDATE).body(Full::new(Bytes::new())).expect("a request");
    assert_eq!(webhooks.handle(get).await.status(), 405);
    let text = http::Request::post(VALIDATE).header("content-type", "text/plain");
    let response = webhooks.handle(text.body(Full::new(Bytes::from("x"))).expect("a request")).await;
    let body = response.into_body().collect().await.expect("a body").to_bytes();
    let body: Value = serde_json::from_slice(&body).expect("a review");
    assert_eq!(body["response"]["status"]["message"], "contentType=text/plain, expected application/json");
}

#[tokio::test]
async fn a_body_over_the_limit_is_not_read() {
    let body = Full::new(Bytes::from(vec![b' '; 8 * 1024 * 1024]));
    let request = http::Request::post(VALIDATE).header("content-type", "application/json");
    let response = webhooks().handle(request.body(body).expect("a request")).await;
    assert_eq!(response.status(), 413);
}

/// Panics, hangs or denies, by the name of the object.
struct Moody;

impl AdmissionHandler for Moody {
    async fn handle(&self, request: &AdmissionRequest) -> AdmissionResponse {
        match request.name.as_str() {
            "panics" => panic!("a bad day"),
            "hangs" => std::future::pending().await,
            _ => {
                assert_eq!(request.operation, Operation::Connect);
                AdmissionResponse::denied("no shells here").audit_annotation("shell", "refused")
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_or_hangs_fails_its_own_request() {
    let webhooks = Webhooks::new();
    let metrics = Metrics::new();
    metrics.with_registry(|registry| webhooks.register_metrics(registry));
    webhooks.admission("/moody", Moody).expect("the path is free");

    let (status, answer) = post(&webhooks, "/moody", &review("CREATE", &json!({ "name": "panics" }))).await;
    assert_eq!(status, 200);
    assert_eq!(answer["response"]["status"]["message"], "panic: a bad day [recovered]");
    assert_eq!(answer["response"]["status"]["code"], 500);

    let start = tokio::time::Instant::now();
    let hangs = review("CREATE", &json!({ "name": "hangs" }));
    assert_eq!(post(&webhooks, "/moody?timeout=3s", &hangs).await.0, 504);
    assert_eq!(start.elapsed(), Duration::from_secs(3));

    let (_, answer) = post(&webhooks, "/moody", &review("CONNECT", &json!({ "name": "a" }))).await;
    assert_eq!(answer["response"]["auditAnnotations"], json!({ "shell": "refused" }));
    assert_eq!(answer["response"]["status"]["reason"], "Forbidden");

    let (_, page) = metrics.page(None);
    for line in [
        r#"controller_runtime_webhook_requests_total{webhook="/moody",code="200"} 2"#,
        r#"controller_runtime_webhook_requests_total{webhook="/moody",code="504"} 1"#,
        r#"controller_runtime_webhook_requests_in_flight{webhook="/moody"} 0"#,
        r#"controller_runtime_webhook_latency_seconds_count{webhook="/moody"} 3"#,
        "controller_runtime_webhook_panics_total 1",
    ] {
        assert!(page.contains(line), "missing {line} in\n{page}");
    }
}

/// Doubles the replicas, with the Rust type or with JSON.
struct Doubling {
    typed: bool,
}

impl AdmissionHandler for Doubling {
    async fn handle(&self, request: &AdmissionRequest) -> AdmissionResponse {
        if self.typed {
            let before: Deployment = request.object().unwrap_or_default();
            let mut after = before.clone();
            after.spec.get_or_insert_default().replicas = Some(2 * replicas(&before));
            return AdmissionResponse::patched_between(request, &before, &after);
        }
        let before: Value = request.object().unwrap_or_default();
        let mut after = before.clone();
        after["spec"]["replicas"] = json!(2 * before["spec"]["replicas"].as_i64().unwrap_or(1));
        AdmissionResponse::patched_between(request, &before, &after)
    }
}

#[tokio::test]
async fn a_handler_returns_the_patch_between_two_states_of_the_object() {
    let webhooks = Webhooks::new();
    webhooks.admission("/typed", Doubling { typed: true }).expect("the path is free");
    webhooks.admission("/json", Doubling { typed: false }).expect("the path is free");
    let request = review("CREATE", &json!({ "object": deployment(&json!(2)) }));
    for path in ["/typed", "/json"] {
        let (_, answer) = post(&webhooks, path, &request).await;
        let response = &answer["response"];
        assert_eq!((&response["allowed"], &response["patchType"]), (&json!(true), &json!("JSONPatch")));
        let patch = response["patch"].as_str().expect("a patch");
        let patch = base64::engine::general_purpose::STANDARD.decode(patch).expect("base64");
        let patch: Value = serde_json::from_slice(&patch).expect("JSON");
        // `fieldOfTheFuture` is kept, and nothing that the type adds is in the patch.
        assert_eq!(patch, json!([{ "op": "replace", "path": "/spec/replicas", "value": 4 }]), "{path}");
    }
    let (_, answer) = post(&webhooks, "/typed", &review("DELETE", &json!({}))).await;
    assert_eq!(answer["response"]["status"]["code"], 400);
}

struct Logging;

impl AdmissionHandler for Logging {
    async fn handle(&self, _: &AdmissionRequest) -> AdmissionResponse {
        tracing::info!(replicas = 3, "Checked");
        AdmissionResponse::allowed()
    }
}

#[tokio::test]
async fn the_log_lines_of_a_handler_have_the_fields_of_its_review() -> anyhow::Result<()> {
    let log = Log::keep()?;
    let webhooks = Webhooks::new();
    webhooks.admission("/logging", Logging)?;
    webhooks.admission("/moody", Moody)?;
    post(&webhooks, "/logging", &review("UPDATE", &json!({}))).await;
    post(&webhooks, "/logging", &review("CREATE", &json!({ "namespace": "" }))).await;
    post(&webhooks, "/moody", &review("DELETE", &json!({ "name": "panics" }))).await;
    tracing::info!("Checked nothing");

    let lines: Vec<String> = log.saying("Checked").iter().map(|line| line[19..].to_owned()).collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    Checked replicas=3 webhook=/logging webhook_group=apps webhook_version=v1 webhook_kind=Deployment operation=UPDATE user=eve request_id=705ab4f5-6393-11e8-b7cc-42010a800002 object=default/web
    Checked replicas=3 webhook=/logging webhook_group=apps webhook_version=v1 webhook_kind=Deployment operation=CREATE user=eve request_id=705ab4f5-6393-11e8-b7cc-42010a800002 object=web
    Checked nothing
    ");
    let of_the_server = ["Handled admission request", "Webhook panicked"];
    for line in of_the_server.iter().flat_map(|message| log.saying(message)) {
        assert!(line.contains(" webhook_kind=Deployment "), "{line}");
        assert_eq!(line.matches(" webhook=").count(), 1, "{line}");
    }
    assert_eq!(log.saying("Webhook panicked").len(), 1);
    Ok(())
}

#[tokio::test]
async fn a_v1beta1_review_gets_a_v1beta1_response() {
    let mut request = review("CREATE", &json!({ "object": deployment(&json!(2)) }));
    request["apiVersion"] = "admission.k8s.io/v1beta1".into();
    let (_, answer) = post(&webhooks(), MUTATE, &request).await;
    assert_eq!(answer["apiVersion"], "admission.k8s.io/v1beta1");
}

#[test]
fn a_path_has_one_webhook() {
    let webhooks = webhooks();
    assert!(
        matches!(webhooks.validator(VALIDATE, Rules), Err(RegisterError::PathTaken(path)) if path == VALIDATE)
    );
    assert!(matches!(webhooks.validator("/convert", Rules), Err(RegisterError::PathTaken(_))));
    assert!(matches!(webhooks.validator("validate", Rules), Err(RegisterError::BadPath(_))));
    assert_eq!(webhooks.paths(), [MUTATE, VALIDATE]);
}
