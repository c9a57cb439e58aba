//! Sends many requests of one type, sequentially or concurrently.
//!
//! Requests are built before the measurement starts, so only sending, processing and reading count.

use std::time::Duration;

use anyhow::{Result, ensure};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use super::endpoint::Endpoint;
use super::objects::{self, Call, Kind};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Create,
    Update,
    Get,
}

impl Verb {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Get => "get",
        }
    }
}

/// Sends one `verb` request for each of `count` objects. Updates and gets require earlier creates.
pub(super) async fn run(
    endpoint: &Endpoint,
    kind: Kind,
    verb: Verb,
    count: usize,
    in_flight: usize,
) -> Result<Duration> {
    send(endpoint, calls(endpoint, kind, verb, count), in_flight).await
}

pub(super) fn calls(endpoint: &Endpoint, kind: Kind, verb: Verb, count: usize) -> Vec<Call> {
    let base = endpoint.base();
    (0..count)
        .map(|at| {
            let name = objects::name(at);
            match verb {
                Verb::Create => objects::create(base, kind, &name),
                Verb::Update => objects::update(base, kind, &name, 1),
                Verb::Get => objects::get(base, kind, &name),
            }
        })
        .collect()
}

/// Sends requests, at most `in_flight` concurrently.
pub(super) async fn send(endpoint: &Endpoint, calls: Vec<Call>, in_flight: usize) -> Result<Duration> {
    let stopwatch = endpoint.stopwatch();
    if in_flight == 1 {
        for call in calls {
            endpoint.call(call).await?;
        }
    } else {
        stream::iter(calls)
            .map(|call| endpoint.call(call))
            .buffer_unordered(in_flight)
            .try_for_each(|_| std::future::ready(Ok(())))
            .await?;
    }
    Ok(stopwatch.elapsed())
}

/// Lists all objects of a kind and checks that there are at least `count`.
pub(super) async fn list(endpoint: &Endpoint, kind: Kind, count: usize) -> Result<Duration> {
    let call = objects::list(endpoint.base(), kind);
    let stopwatch = endpoint.stopwatch();
    let bytes = endpoint.call(call).await?;
    let took = stopwatch.elapsed();
    let least = count * kind.object("object-00000", 0).to_string().len();
    ensure!(bytes > least, "a list of {count} objects has only {bytes} bytes");
    Ok(took)
}

#[cfg(test)]
mod tests {
    use kubewright_apiserver::serve::Listening;
    use kubewright_apiserver::{ApiServer, Options};

    use super::super::tls::Connection;
    use super::*;

    async fn all(endpoint: &Endpoint, in_flight: usize) {
        for kind in [Kind::ConfigMap, Kind::Deployment] {
            for verb in [Verb::Create, Verb::Update, Verb::Get] {
                run(endpoint, kind, verb, 20, in_flight).await.unwrap();
            }
            list(endpoint, kind, 20).await.unwrap();
        }
    }

    #[tokio::test]
    async fn every_request_succeeds_in_process() {
        all(&Endpoint::InProcess(ApiServer::new(Options::default())), 1).await;
    }

    #[tokio::test]
    async fn every_request_succeeds_over_tls() {
        let listening = Listening::open(ApiServer::new(Options::default()), 0).await.unwrap();
        all(&Endpoint::Tls(Connection::open(&listening.kubeconfig()).await.unwrap()), 4).await;
        listening.close().await;
    }

    #[tokio::test]
    async fn an_error_response_stops_the_benchmark() {
        let endpoint = Endpoint::InProcess(ApiServer::new(Options::default()));
        let error = run(&endpoint, Kind::ConfigMap, Verb::Get, 1, 1).await.unwrap_err();
        assert!(error.to_string().contains("404 Not Found"), "{error}");
    }

    #[tokio::test]
    async fn an_update_changes_the_resource_version_of_each_object() {
        let server = ApiServer::new(Options::default());
        let endpoint = Endpoint::InProcess(server.clone());
        run(&endpoint, Kind::Deployment, Verb::Create, 5, 1).await.unwrap();
        let before = server.revision();
        run(&endpoint, Kind::Deployment, Verb::Update, 5, 1).await.unwrap();
        assert_eq!(server.revision(), before + 5);
    }
}
