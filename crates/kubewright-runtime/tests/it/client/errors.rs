//! Errors of the client: as the server returns them, and as proxies do.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kubewright_runtime::client::{Error, ignore_not_found};
use kubewright_runtime::{Delete, Key};
use serde_json::json;

use super::key;
use crate::world::{Effect, World, config_map, object, soon};

type Question = (&'static str, fn(&Error) -> bool);

const QUESTIONS: [Question; 14] = [
    ("not found", Error::is_not_found),
    ("already exists", Error::is_already_exists),
    ("conflict", Error::is_conflict),
    ("invalid", Error::is_invalid),
    ("bad request", Error::is_bad_request),
    ("forbidden", Error::is_forbidden),
    ("unauthorized", Error::is_unauthorized),
    ("gone", Error::is_gone),
    ("expired", Error::is_expired),
    ("too many requests", Error::is_too_many_requests),
    ("timeout", Error::is_timeout),
    ("server timeout", Error::is_server_timeout),
    ("internal", Error::is_internal),
    ("service unavailable", Error::is_service_unavailable),
];

/// The predicates that hold for an error.
fn is(error: &Error) -> Vec<&'static str> {
    QUESTIONS.iter().filter(|(_, question)| question(error)).map(|(name, _)| *name).collect()
}

async fn met(effect: Effect) -> Error {
    let world = World::new();
    world.faults.every(effect, |_| true);
    world.client().get::<ConfigMap>(&key("a")).await.unwrap_err()
}

#[tokio::test(start_paused = true)]
async fn every_reason_has_its_predicate() {
    for (code, reason, wanted) in [
        (404, "NotFound", vec!["not found"]),
        (409, "AlreadyExists", vec!["already exists"]),
        (409, "Conflict", vec!["conflict"]),
        (422, "Invalid", vec!["invalid"]),
        (400, "BadRequest", vec!["bad request"]),
        (403, "Forbidden", vec!["forbidden"]),
        (401, "Unauthorized", vec!["unauthorized"]),
        (410, "Gone", vec!["gone"]),
        (410, "Expired", vec!["gone", "expired"]),
        (429, "TooManyRequests", vec!["too many requests"]),
        (504, "Timeout", vec!["timeout"]),
        // Its code is that of an internal error, but it is not one.
        (500, "ServerTimeout", vec!["timeout", "server timeout"]),
        (500, "InternalError", vec!["internal"]),
        (503, "ServiceUnavailable", vec!["service unavailable"]),
        (405, "MethodNotAllowed", vec![]),
        // Unknown reasons are classified by their codes.
        (404, "NoSuchThing", vec!["not found"]),
        (409, "", vec!["conflict"]),
        (500, "Oops", vec!["internal"]),
    ] {
        let error = met(Effect::Status(code, reason)).await;
        assert_eq!(is(&error), wanted, "{code} {reason}");
        assert_eq!(error.status().unwrap().code, code);
        assert_eq!(error.to_string(), format!("injected by the test: {reason}"));
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_without_json_is_classified_by_its_code() {
    let error = met(Effect::Answer(503, "<html>try later</html>".to_owned())).await;
    assert_eq!(is(&error), ["service unavailable"]);
    assert_eq!(error.to_string(), "503 Service Unavailable: <html>try later</html>");
    let error = met(Effect::Answer(502, "x".repeat(10_000))).await;
    assert!(error.to_string().len() < 600);
    // A Status without a code gets the code of the response.
    let error = met(Effect::Answer(409, json!({"kind": "Status", "message": "no"}).to_string())).await;
    assert_eq!((is(&error), error.status().unwrap().code), (vec!["conflict"], 409));
    let error = met(Effect::Answer(200, "not json".to_owned())).await;
    assert!(matches!(error, Error::Decode { .. }));
    let error = met(Effect::Refuse).await;
    assert!(matches!(error, Error::Send(_)) && is(&error).is_empty());
    assert_eq!(error.to_string(), "no response from the API server");
}

#[tokio::test(start_paused = true)]
async fn errors_of_the_server_have_their_predicates() -> Result<()> {
    let world = World::new();
    let client = world.client();
    let missing = client.get::<ConfigMap>(&key("a")).await.unwrap_err();
    assert_eq!(missing.to_string(), "configmaps \"a\" not found");
    assert!(ignore_not_found::<()>(Err(missing))?.is_none());
    assert_eq!(ignore_not_found(Ok(1))?, Some(1));
    client.create(&config_map("a")).await?;
    assert_eq!(is(&client.create(&config_map("a")).await.unwrap_err()), ["already exists"]);
    let wrong = client.create(&config_map("Not A Name")).await.unwrap_err();
    assert_eq!(is(&wrong), ["invalid"]);
    assert!(ignore_not_found::<()>(Err(wrong)).is_err());
    assert!(client.get::<ConfigMap>(&key("a")).await.is_ok());
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn nothing_can_be_created_in_a_terminating_namespace() -> Result<()> {
    let world = World::new();
    let client = world.client();
    let namespace: Namespace = object(json!({"metadata": {"name": "going"}}));
    client.create(&namespace).await?;
    let mut kept = config_map("kept");
    kept.metadata.namespace = Some("going".to_owned());
    kept.metadata.finalizers = Some(vec!["example.org/wait".to_owned()]);
    client.create(&kept).await?;
    client.delete_key::<Namespace>(&Key::cluster("going"), &Delete::new()).await?;
    let mut late = config_map("late");
    late.metadata.namespace = Some("going".to_owned());
    let error = soon("the refusal", Box::pin(client.create(&late))).await.unwrap_err();
    assert!(error.is_forbidden() && error.is_namespace_terminating(), "{error}");
    assert!(!client.get::<ConfigMap>(&key("none")).await.unwrap_err().is_namespace_terminating());
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_returned() {
    let busy = json!({
        "kind": "Status", "status": "Failure", "message": "later", "reason": "TooManyRequests", "code": 429,
        "details": {"retryAfterSeconds": 7},
    });
    let error = met(Effect::Answer(429, busy.to_string())).await;
    assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
    assert_eq!(met(Effect::Status(429, "TooManyRequests")).await.retry_after(), None);
}
