//! The HTTP server of the web UI: static files, one event stream and object details.
//!
//! It is read-only and local: it listens on 127.0.0.1 and only accepts the host names 127.0.0.1 and
//! `localhost`, which prevents DNS rebinding. The page loads nothing from other hosts, and the response
//! headers enforce that.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Response, StatusCode, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use kubewright_page::assets::{self, Mode};
use serde::Serialize;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::connections::Connections;
use super::state::Shared;
use super::stream;

/// Maximum number of connections.
const CONNECTIONS: usize = 128;
/// Maximum number of streams, one per tab.
const STREAMS: usize = 32;
/// Timeout for reading a request.
const PATIENCE: Duration = Duration::from_secs(10);

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Serves the page while polled.
pub(super) async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let streams = Arc::new(Semaphore::new(STREAMS));
    let mut connections = JoinSet::new();
    let mut incoming = Connections::new(listener);
    loop {
        tokio::select! {
            stream = incoming.next(), if connections.len() < CONNECTIONS => {
                connections.spawn(connection(stream, shared.clone(), streams.clone()));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn connection(stream: TcpStream, shared: Arc<Shared>, streams: Arc<Semaphore>) {
    // Do not delay small messages. A failure only makes the page slower.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let answer = answer(&request, &shared, &streams);
        async move { Ok::<_, Infallible>(answer) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(PATIENCE);
    // A disconnected browser is not an error.
    let _ = http.serve_connection(TokioIo::new(stream), service).await;
}

fn answer(
    request: &hyper::Request<Incoming>,
    shared: &Arc<Shared>,
    streams: &Arc<Semaphore>,
) -> Response<Body> {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    if !assets::is_local(host) {
        let text = "this page is local only: open it as http://127.0.0.1:PORT or http://localhost:PORT\n";
        return plain(StatusCode::FORBIDDEN, text);
    }
    if request.method() != Method::GET {
        let mut refusal = plain(StatusCode::METHOD_NOT_ALLOWED, "only GET is allowed\n");
        refusal.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET"));
        return refusal;
    }
    let query = |name: &str| {
        let query = request.uri().query().unwrap_or_default();
        query
            .split('&')
            .find_map(|pair| pair.split_once('=').filter(|(key, _)| *key == name))
            .map(|(_, value)| value)
    };
    match request.uri().path() {
        "/events" => {
            let Ok(place) = streams.clone().try_acquire_owned() else {
                return plain(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "too many open connections; close other tabs of this page\n",
                );
            };
            let header = request.headers().get("last-event-id").and_then(|id| id.to_str().ok());
            let body = stream::body(shared.clone(), header.or_else(|| query("after")), place);
            typed(StatusCode::OK, "text/event-stream", body.boxed_unsync())
        }
        "/object" => json(query("id").and_then(|id| shared.read(|state| state.detail(id)))),
        "/why" => {
            // Colons of IDs are escaped by some clients.
            let id = query("id").map(|id| id.replace("%3A", ":"));
            json(id.and_then(|id| shared.read(|state| state.why(&id))))
        }
        path => match assets::file(path, Mode::Dev) {
            Some((sort, text)) => typed(StatusCode::OK, sort, full(text)),
            None => plain(StatusCode::NOT_FOUND, "not found\n"),
        },
    }
}

fn json(value: Option<impl Serialize>) -> Response<Body> {
    match value.map(|value| serde_json::to_string(&value)) {
        None => plain(StatusCode::NOT_FOUND, "not found\n"),
        Some(Ok(text)) => typed(StatusCode::OK, "application/json", full(text)),
        Some(Err(error)) => plain(StatusCode::INTERNAL_SERVER_ERROR, &format!("{error}\n")),
    }
}

fn full(text: impl Into<Bytes>) -> Body {
    Full::new(text.into()).boxed_unsync()
}

fn plain(status: StatusCode, text: &str) -> Response<Body> {
    typed(status, "text/plain; charset=utf-8", full(text.to_owned()))
}

fn typed(status: StatusCode, sort: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(sort));
    for (name, value) in assets::HEADERS {
        response.headers_mut().insert(*name, HeaderValue::from_static(value));
    }
    response
}
