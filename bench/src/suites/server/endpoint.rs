//! A server and the transport to it.

use anyhow::{Result, bail};
use bytes::{Buf as _, Bytes};
use http::Response;
use http_body_util::BodyExt as _;
use kubewright_apiserver::ApiServer;

use super::objects::Call;
use super::tls::Connection;
use crate::stopwatch::Stopwatch;

#[derive(Clone)]
pub(super) enum Endpoint {
    /// Called directly, without a socket.
    InProcess(ApiServer),
    /// Over HTTP/2 and TLS.
    Tls(Connection),
}

impl Endpoint {
    /// The URL prefix of requests.
    pub(super) fn base(&self) -> &str {
        match self {
            Self::InProcess(_) => "",
            Self::Tls(connection) => connection.url(),
        }
    }

    /// The stopwatch for requests. In-process requests run on the caller's thread.
    pub(super) fn stopwatch(&self) -> Stopwatch {
        match self {
            Self::InProcess(_) => Stopwatch::thread(),
            Self::Tls(_) => Stopwatch::wall(),
        }
    }

    /// Sends a request, reads the whole response and returns its size in bytes. Fails on an error response.
    pub(super) async fn call(&self, call: Call) -> Result<usize> {
        match self {
            Self::InProcess(server) => read(server.handle(call).await).await,
            Self::Tls(connection) => read(connection.send(call).await?).await,
        }
    }
}

async fn read<B>(response: Response<B>) -> Result<usize>
where
    B: http_body::Body<Data = Bytes> + Unpin,
    B::Error: std::error::Error + Send + Sync + 'static,
{
    let status = response.status();
    let mut body = response.into_body();
    if !status.is_success() {
        let text = body.collect().await?.to_bytes();
        bail!("the server responded with {status}: {}", String::from_utf8_lossy(&text));
    }
    let mut bytes = 0;
    // Frames are dropped, because concatenating them is not part of the server's work.
    while let Some(frame) = body.frame().await {
        bytes += frame?.into_data().map_or(0, |data| data.remaining());
    }
    Ok(bytes)
}
