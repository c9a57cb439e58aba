//! A client that calls webhooks as an API server does: TLS, HTTP/1.1, kept connections.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use futures_util::future::try_join_all;
use http::{Request, header};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::samples::Samples;

/// The address and the CA of a webhook server.
pub(super) struct Target {
    pub(super) address: SocketAddr,
    pub(super) config: Arc<ClientConfig>,
}

/// A request and whether the server must allow it.
pub(super) struct Review {
    pub(super) path: &'static str,
    pub(super) body: Bytes,
    pub(super) allowed: bool,
}

/// The result of a measurement.
pub(super) struct Measured {
    pub(super) per_second: f64,
    /// In seconds.
    pub(super) latencies: Samples,
}

/// Sends a review `count` times, over several connections with one request at a time each.
pub(super) async fn send(
    target: &Target,
    review: &Review,
    connections: usize,
    count: usize,
) -> Result<Measured> {
    let mut senders = Vec::new();
    for _ in 0..connections {
        senders.push(connect(target).await?);
    }
    let started = Instant::now();
    let sent = senders.into_iter().map(|sender| send_all(sender, target, review, count / connections));
    let sent = try_join_all(sent).await?;
    let seconds = started.elapsed().as_secs_f64();
    let latencies: Vec<f64> = sent.into_iter().flatten().collect();
    let per_second = f64::from(u32::try_from(latencies.len())?) / seconds;
    Ok(Measured { per_second, latencies: latencies.into_iter().collect() })
}

async fn send_all(
    mut sender: SendRequest<Full<Bytes>>,
    target: &Target,
    review: &Review,
    count: usize,
) -> Result<Vec<f64>> {
    let mut latencies = Vec::with_capacity(count);
    for turn in 0..count {
        let request = Request::post(format!("{}?timeout=10s", review.path))
            .header(header::HOST, target.address.to_string())
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json, */*")
            .body(Full::new(review.body.clone()))?;
        let started = Instant::now();
        sender.ready().await.context("the connection is closed")?;
        let response = sender.send_request(request).await.context("send the review")?;
        let status = response.status();
        let body = response.into_body().collect().await.context("read the response")?.to_bytes();
        latencies.push(started.elapsed().as_secs_f64());
        ensure!(
            status.is_success(),
            "the webhook responded with {status}: {}",
            String::from_utf8_lossy(&body)
        );
        // Decoding every response would measure this client.
        if turn == 0 {
            let answer: Value = serde_json::from_slice(&body).context("the response is not JSON")?;
            let allowed = answer["response"]["allowed"] == review.allowed;
            ensure!(allowed, "expected allowed: {}, got {answer}", review.allowed);
        }
    }
    Ok(latencies)
}

async fn connect(target: &Target) -> Result<SendRequest<Full<Bytes>>> {
    let stream = TcpStream::connect(target.address).await.context("connect to the webhook")?;
    stream.set_nodelay(true)?;
    let connector = TlsConnector::from(target.config.clone());
    let name = ServerName::from(target.address.ip());
    let stream = connector.connect(name, stream).await.context("TLS handshake")?;
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.context("HTTP handshake")?;
    // Ends with the sender. Errors are returned to the pending request.
    tokio::spawn(connection);
    Ok(sender)
}
