//! Test fixtures: a server, clients, and small objects.
//!
//! Every server has a fixed seed and tokio's clock, so that a test on a paused runtime controls the time.
//! Nothing here asserts.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use kubewright_apiserver::clock::TokioClock;
use kubewright_apiserver::{ApiServer, Options};

/// 2026-01-01T00:00:00Z in microseconds.
pub(crate) const START: i64 = 1_767_225_600_000_000;

/// Deadline for hanging operations; longer than any test needs.
const DEADLINE: Duration = Duration::from_mins(1);

pub(crate) fn options() -> Options {
    Options { clock: Arc::new(TokioClock::starting_at(START)), seed: Some(1), ..Options::default() }
}

pub(crate) fn server() -> ApiServer {
    ApiServer::new(options())
}

/// kube's client on the in-process server: no socket, no TLS.
pub(crate) fn client(server: &ApiServer) -> Client {
    Client::new(server.clone(), "default")
}

/// A client on a new server.
pub(crate) fn alone() -> Client {
    client(&server())
}

/// Waits for `future`, and panics after the deadline.
pub(crate) async fn soon<F: Future>(what: &str, future: F) -> F::Output {
    let Ok(output) = tokio::time::timeout(DEADLINE, future).await else {
        panic!("{what} took longer than {DEADLINE:?}");
    };
    output
}

pub(crate) fn config_map(name: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        data: Some([("key".to_owned(), "value".to_owned())].into()),
        ..ConfigMap::default()
    }
}

/// A typed object from JSON, which is shorter than a struct with many unset fields.
pub(crate) fn object<K: serde::de::DeserializeOwned>(json: serde_json::Value) -> K {
    serde_json::from_value(json).expect("the test's own object is well-formed")
}

pub(crate) fn deployment(name: &str) -> k8s_openapi::api::apps::v1::Deployment {
    object(serde_json::json!({
        "metadata": {"name": name},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "nginx"}]},
            },
        },
    }))
}

pub(crate) fn pod(name: &str) -> k8s_openapi::api::core::v1::Pod {
    object(serde_json::json!({
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "main", "image": "nginx"}]},
    }))
}
