//! Delivery of events to many watchers, in-process.
//!
//! Measured from the first write until the last watcher has received the last event. With few watchers the
//! writes dominate, with many the delivery.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use kubewright_apiserver::{ApiServer, Body, Options};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::endpoint::Endpoint;
use super::objects::{self, Kind};
use super::traffic::{self, Verb};
use crate::stopwatch::Stopwatch;

/// Number of objects that are written in turn.
const OBJECTS: usize = 100;
/// Timeout, reached only if an event is lost.
const PATIENCE: Duration = Duration::from_mins(2);

/// Delivers `events` events to each of `watchers` watchers.
pub(super) async fn run(watchers: usize, events: usize) -> Result<Duration> {
    let server = ApiServer::new(Options::default());
    let endpoint = Endpoint::InProcess(server.clone());
    traffic::run(&endpoint, Kind::ConfigMap, Verb::Create, OBJECTS, 1).await?;
    let calls = (0..events)
        .map(|at| {
            let turn = u32::try_from(at / OBJECTS + 1).unwrap_or(u32::MAX);
            objects::update(endpoint.base(), Kind::ConfigMap, &objects::name(at % OBJECTS), turn)
        })
        .collect();

    let mut open = JoinSet::new();
    for _ in 0..watchers {
        let watch = objects::watch(endpoint.base(), Kind::ConfigMap, server.revision());
        let response = server.handle(watch).await;
        ensure!(response.status().is_success(), "the server rejected a watch: {}", response.status());
        open.spawn(see(response.into_body(), events));
    }

    let stopwatch = Stopwatch::wall();
    let sent = traffic::send(&endpoint, calls, 1);
    let seen = async {
        while let Some(watcher) = open.join_next().await {
            watcher??;
        }
        anyhow::Ok(())
    };
    let (sent, seen) =
        timeout(PATIENCE, async { tokio::join!(sent, seen) }).await.context("events were lost")?;
    sent?;
    seen?;
    Ok(stopwatch.elapsed())
}

/// Reads until `events` events have arrived.
async fn see(mut body: Body, events: usize) -> Result<()> {
    let mut seen = 0;
    while seen < events {
        let frame = body.frame().await.with_context(|| format!("a watch ended after {seen} events"))??;
        seen += frame.into_data().map_or(0, |data| lines(&data));
    }
    ensure!(seen == events, "a watcher received {seen} events instead of {events}");
    Ok(())
}

/// Counts the lines. Each event is a line; a frame may contain several.
fn lines(data: &Bytes) -> usize {
    // Chunks of up to 255 bytes let the compiler vectorize the count.
    data.chunks(255)
        .map(|part| usize::from(part.iter().map(|byte| u8::from(*byte == b'\n')).sum::<u8>()))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_watcher_receives_every_event() {
        assert!(Box::pin(run(7, 150)).await.unwrap() > Duration::ZERO);
    }
}
