//! Continue tokens and their expiry.

use std::sync::Arc;
use std::time::Duration;

use kubewright_apiserver::clock::ManualClock;
use kubewright_apiserver::{ApiServer, Options};
use serde_json::{Value, json};

use crate::exchange::{Answer, send};
use crate::world::START;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn get(server: &ApiServer, query: &str) -> Answer {
    send(server, "GET", &format!("{MAPS}?{query}"), &Value::Null).await
}

async fn create(server: &ApiServer, name: &str) {
    assert_eq!(send(server, "POST", MAPS, &json!({"metadata": {"name": name}})).await.status, 201);
}

fn names(list: &Value) -> Vec<&str> {
    list["items"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|item| item["metadata"]["name"].as_str())
        .collect()
}

fn token(list: &Value) -> &str {
    list["metadata"]["continue"].as_str().unwrap_or_default()
}

fn server(compaction_interval: Duration) -> (ApiServer, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new(START));
    let options = Options { clock: clock.clone(), seed: Some(1), compaction_interval, ..Options::default() };
    (ApiServer::new(options), clock)
}

#[tokio::test]
async fn an_expired_continue_token_offers_an_inconsistent_continuation() {
    let (server, clock) = server(Options::default().compaction_interval);
    for name in ["a", "b", "c"] {
        create(&server, name).await;
    }
    let first = get(&server, "limit=1").await.body;
    let (old, at) = (token(&first).to_owned(), first["metadata"]["resourceVersion"].clone());
    create(&server, "d").await;
    clock.advance(Duration::from_mins(5));
    assert_eq!(names(&get(&server, &format!("limit=1&continue={old}")).await.body), ["b"]);
    clock.advance(Duration::from_mins(5));

    let gone = get(&server, &format!("limit=1&continue={old}")).await;
    assert_eq!((gone.status, &gone.body["reason"]), (410, &json!("Expired")));
    assert!(gone.message().starts_with("The provided continue parameter is too old"), "{}", gone.message());
    assert!(gone.message().contains("results in an inconsistent list"), "{}", gone.message());
    let rest = get(&server, &format!("limit=2&continue={}", token(&gone.body))).await;
    assert_eq!(names(&rest.body), ["b", "c"], "{}", rest.text);
    assert_ne!(rest.body["metadata"]["resourceVersion"], at);
    // The following pages are consistent again.
    create(&server, "e").await;
    let last = get(&server, &format!("continue={}", token(&rest.body))).await;
    assert_eq!(names(&last.body), ["d"]);

    let exact = format!("resourceVersion={}&resourceVersionMatch=Exact", at.as_str().unwrap_or_default());
    let gone = get(&server, &exact).await;
    assert_eq!((gone.status, gone.message()), (410, "The resourceVersion for the provided list is too old."));
}

#[tokio::test]
async fn without_compaction_a_continue_token_does_not_expire() {
    let (server, clock) = server(Duration::ZERO);
    for name in ["a", "b"] {
        create(&server, name).await;
    }
    let first = get(&server, "limit=1").await.body;
    create(&server, "c").await;
    clock.advance(Duration::from_hours(24));
    assert_eq!(names(&get(&server, &format!("continue={}", token(&first))).await.body), ["b"]);
}

#[tokio::test]
async fn watches_are_not_affected_by_compaction() {
    let (server, clock) = server(Duration::from_mins(5));
    create(&server, "a").await;
    let at = server.revision();
    create(&server, "b").await;
    clock.advance(Duration::from_hours(1));
    let watch = get(&server, &format!("watch=true&resourceVersion={at}&timeoutSeconds=1")).await;
    assert!(watch.text.contains(r#""name":"b""#) && !watch.text.contains("ERROR"), "{}", watch.text);
}

#[tokio::test]
async fn a_continue_token_with_revision_zero_is_rejected() {
    let (server, _) = server(Duration::ZERO);
    // {"v":"meta.k8s.io/v1","rv":0,"start":"a"}
    let refused = get(&server, "continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MCwic3RhcnQiOiJhIn0").await;
    assert_eq!(
        (refused.status, refused.message()),
        (
            400,
            "invalid continue token: continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)"
        )
    );
}
