//! Webhooks that hang, are unreachable or return invalid responses: the failure policy decides, and other
//! requests are not blocked.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};

use super::hook::{DIES, Hook, review};
use super::{configure, create_config_map, send};
use crate::world::{server, soon};

pub(super) fn message(body: &Value) -> &str {
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
async fn hanging_webhooks_block_no_other_request() {
    const HANGING: usize = 100;
    let hook = Hook::start(|_, _| None).await;
    let server = server();
    configure(&server, "Validating", "v", hook.client("/hang"), json!({"timeoutSeconds": 30})).await;
    let mut hanging = tokio::task::JoinSet::new();
    for number in 0..HANGING {
        let server = server.clone();
        hanging.spawn(async move { create_config_map(&server, &format!("m{number}")).await });
    }
    soon("the webhook's requests", async {
        while hook.received.lock().unwrap().len() < HANGING {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    for number in 0..100 {
        let secret = json!({"metadata": {"name": format!("s{number}")}});
        assert_eq!(send(&server, "POST", "/api/v1/namespaces/default/secrets", &secret).await.0, 201);
    }
    assert!(hanging.try_join_next().is_none(), "the other writes did not wait for the webhook");
}

#[tokio::test]
async fn a_hanging_webhook_fails_at_its_timeout() {
    let hook = Hook::start(|_, _| None).await;
    let server = server();
    configure(&server, "Validating", "v", hook.client("/hang"), json!({"timeoutSeconds": 1})).await;
    let (status, _, body) = soon("the timeout", create_config_map(&server, "a")).await;
    assert_eq!(status, 500);
    assert!(message(&body).ends_with("/hang?timeout=1s\": context deadline exceeded"), "{body}");
}

#[tokio::test]
async fn the_failure_policy_decides_for_every_misbehaviour() {
    let hook = Hook::start(|path, request| match path {
        "/hang" => None,
        "/text" => Some(json!("no review")),
        "/huge" => Some(json!({"response": {"uid": request["uid"], "x": "y".repeat(10 << 20)}})),
        _ => Some(json!({})),
    })
    .await;
    for kind in ["Validating", "Mutating"] {
        for path in ["/hang", DIES, "/text", "/huge", "/empty"] {
            let server = server();
            for (policy, expected) in [("Fail", 500), ("Ignore", 201)] {
                let more = json!({"failurePolicy": policy, "timeoutSeconds": 1});
                configure(&server, kind, "hook", hook.client(path), more).await;
                let (status, _, body) = soon(path, create_config_map(&server, "a")).await;
                assert_eq!(status, expected, "{kind} {path} {policy}: {body}");
                let plural = format!("{}webhookconfigurations", kind.to_lowercase());
                let path = format!("/apis/admissionregistration.k8s.io/v1/{plural}/hook");
                assert_eq!(send(&server, "DELETE", &path, &Value::Null).await.0, 200);
            }
        }
    }
}

#[tokio::test]
async fn connections_are_reused_and_replaced_after_a_failure() {
    let hook =
        Hook::start(|path, request| (path != "/hang").then(|| review(request, json!({"allowed": true}))))
            .await;
    let opened = || hook.connections.swap(0, Ordering::Relaxed);
    let server = server();
    configure(&server, "Validating", "v", hook.client("/"), json!({})).await;
    for number in 0..50 {
        assert_eq!(create_config_map(&server, &format!("a{number}")).await.0, 201);
    }
    assert_eq!(opened(), 1, "writes one after the other");

    // Concurrent writes open at most one connection each, and later ones reuse them.
    for round in 0..3 {
        let mut writes = tokio::task::JoinSet::new();
        for number in 0..20 {
            let server = server.clone();
            writes.spawn(async move { create_config_map(&server, &format!("b{round}-{number}")).await.0 });
        }
        assert!(writes.join_all().await.iter().all(|status| *status == 201));
    }
    assert!(opened() < 20, "20 writes at a time");

    // A connection that was closed, or whose response is outstanding, is not used again.
    for path in [DIES, "/hang"] {
        let server = self::server();
        let more = json!({"timeoutSeconds": 1, "failurePolicy": "Ignore"});
        configure(&server, "Validating", "v", hook.client(path), more).await;
        for name in ["a", "b", "c"] {
            assert_eq!(soon(path, create_config_map(&server, name)).await.0, 201);
        }
        assert_eq!(opened(), 3, "{path}");
    }
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
    // Both CAs have the same name.
    let expected = "tls: failed to verify certificate: x509: certificate signed by unknown authority (possibly because of \"x509: \
                    ECDSA verification failure\" while trying to verify candidate authority certificate \"kubewright\")";
    assert!(message(&body).ends_with(expected), "{body}");
}

#[tokio::test]
async fn a_webhook_without_side_effects_on_dry_run_is_called() {
    let hook = Hook::start(|_, request| Some(review(request, json!({"allowed": true})))).await;
    let server = server();
    configure(&server, "Validating", "v", hook.client("/x"), json!({"sideEffects": "NoneOnDryRun"})).await;
    let path = "/api/v1/namespaces/default/configmaps?dryRun=All";
    let object = json!({"metadata": {"name": "a"}});
    assert_eq!(send(&server, "POST", path, &object).await.0, 201);
    assert_eq!(hook.take()[0]["request"]["dryRun"], true);
}
