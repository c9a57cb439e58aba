//! Webhooks that hang, are unreachable or return invalid responses: the failure policy decides, and other
//! requests are not blocked.

use std::time::Duration;

use serde_json::{Value, json};

use super::hook::{Hook, review};
use super::{configure, create_config_map, send};
use crate::world::{server, soon};

fn message(body: &Value) -> &str {
    body["message"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn an_unreachable_webhook_fails_closed_or_open() {
    let hook = Hook::start(|_, _| None).await;
    let (address, client) = (hook.address, hook.client("/x"));
    drop(hook);
    let server = server();
    configure(&server, "Validating", "v", client, json!({})).await;
    // The listener closes when its task ends.
    let (status, body) = soon("the refusal", async {
        loop {
            let (status, _, body) = create_config_map(&server, "a").await;
            if message(&body).contains("refused") {
                return (status, body);
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(status, 500);
    assert_eq!(
        message(&body),
        format!(
            "Internal error occurred: failed calling webhook \"v.example.com\": failed to call webhook: Post \
             \"https://{address}/x?timeout=10s\": dial tcp {address}: connect: connection refused"
        )
    );
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/v";
    let (_, _, mut configuration) = send(&server, "GET", path, &Value::Null).await;
    configuration["webhooks"][0]["failurePolicy"] = "Ignore".into();
    assert_eq!(send(&server, "PUT", path, &configuration).await.0, 200);
    assert_eq!(create_config_map(&server, "a").await.0, 201);
}

#[tokio::test]
async fn a_hanging_webhook_blocks_no_other_request() {
    let hook =
        Hook::start(|path, request| (path != "/hang").then(|| review(request, json!({"allowed": true}))))
            .await;
    let server = server();
    configure(&server, "Validating", "v", hook.client("/hang"), json!({"timeoutSeconds": 1})).await;
    let hanging = tokio::spawn({
        let server = server.clone();
        async move { create_config_map(&server, "a").await }
    });
    soon("the webhook's request", async {
        while hook.received.lock().unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    let secret = json!({"metadata": {"name": "s"}});
    let began = std::time::Instant::now();
    assert_eq!(send(&server, "POST", "/api/v1/namespaces/default/secrets", &secret).await.0, 201);
    assert!(began.elapsed() < Duration::from_millis(500), "{:?}", began.elapsed());
    let (status, _, body) = soon("the timeout", hanging).await.unwrap();
    assert_eq!(status, 500);
    assert!(message(&body).ends_with("/hang?timeout=1s\": context deadline exceeded"), "{body}");
}

#[tokio::test]
async fn invalid_responses_give_upstreams_errors() {
    let hook = Hook::start(|path, request| {
        Some(match path {
            "/text" => json!("no review"),
            "/huge" => {
                json!({"response": {"uid": request["uid"], "allowed": true, "x": "y".repeat(10 << 20)}})
            }
            "/uid" => review(&json!({"uid": "other"}), json!({"allowed": true})),
            "/patch" => review(request, json!({"allowed": true, "patch": "bm8=", "patchType": "JSONPatch"})),
            _ => json!({}),
        })
    })
    .await;
    for (path, expected) in [
        ("/empty", "received invalid webhook response: webhook response was absent"),
        ("/uid", "received invalid webhook response: expected response.uid="),
        (
            "/text",
            "failed to call webhook: couldn't get version/kind; json parse error: json: cannot unmarshal string",
        ),
        ("/huge", "the response is larger than"),
        ("/patch", "received undecodable patch in webhook response: "),
    ] {
        let server = server();
        configure(&server, "Mutating", "m", hook.client(path), json!({})).await;
        let (status, _, body) = create_config_map(&server, "a").await;
        assert_eq!(status, 500);
        assert!(message(&body).contains(expected), "{path}: {body}");
    }
}

#[tokio::test]
async fn a_webhook_certificate_of_another_ca_is_not_trusted() {
    let (hook, other) = (Hook::start(|_, _| None).await, Hook::start(|_, _| None).await);
    let server = server();
    let mut client = hook.client("/x");
    client["caBundle"] = other.client("/")["caBundle"].clone();
    configure(&server, "Validating", "v", client, json!({})).await;
    let (status, _, body) = create_config_map(&server, "a").await;
    assert_eq!(status, 500);
    let expected = "tls: failed to verify certificate: x509: certificate signed by unknown authority";
    assert!(message(&body).ends_with(expected), "{body}");
}

#[tokio::test]
async fn a_dry_run_fails_if_a_webhook_has_side_effects() {
    let hook = Hook::start(|_, request| Some(review(request, json!({"allowed": true})))).await;
    let server = server();
    configure(&server, "Validating", "v", hook.client("/x"), json!({"sideEffects": "NoneOnDryRun"})).await;
    let path = "/api/v1/namespaces/default/configmaps?dryRun=All";
    let object = json!({"metadata": {"name": "a"}});
    assert_eq!(send(&server, "POST", path, &object).await.0, 201);
    assert_eq!(hook.take()[0]["request"]["dryRun"], true);
}
