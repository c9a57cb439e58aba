//! A small HTTP server: for probes, for metrics, and for webhooks.
//!
//! [`Server`] owns a socket and the connections on it. Each server has one [`Handler`]; there is no router, since
//! nobody here serves more than a handful of fixed paths ([`Handler::paths`]). It is hyper with hyper-util and
//! nothing on top: a web framework would be some twenty more crates that every operator builds, for a `match` on
//! a path.
//!
//! It speaks HTTP/1.1 only. HTTP/2 would win nothing for a scrape each half minute, and costs an open door for rapid
//! resets (CVE-2023-44487), for which controller-runtime's and kubebuilder's servers have it off as well.
//!
//! The invariant: nothing outlives [`Server::run`]. Connections are its tasks; when it ends, or is dropped, so do
//! they. It reads no flags and decides nothing about requests.

mod address;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::{HeaderValue, StatusCode, header};
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::certs::Certificates;
use crate::connect::stream::Io;

pub use address::{AddressError, BindAddress};

/// How long running requests may take once the server is told to stop: controller-runtime's grace.
const DRAIN: Duration = Duration::from_secs(30);
/// How long a client may take to say who it is or what it wants. Idle connections are closed after it, too.
const PATIENCE: Duration = Duration::from_secs(32);
/// How long to wait when no connection can be accepted, most likely for want of file descriptors.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// A request, with its body still on its way.
pub type Request = http::Request<hyper::body::Incoming>;
/// An answer. All of ours are small, and known whole.
pub type Response = http::Response<Full<Bytes>>;

/// What answers requests. Cheap to clone.
#[derive(Clone)]
pub struct Handler(Arc<dyn Fn(Request) -> BoxFuture<'static, Response> + Send + Sync>);

impl Handler {
    /// A function as a handler. If it panics, the client is answered 500 and the server goes on.
    pub fn new<H, F>(handle: H) -> Self
    where
        H: Fn(Request) -> F + Send + Sync + 'static,
        F: Future<Output = Response> + Send + 'static,
    {
        Self(Arc::new(move |request| handle(request).boxed()))
    }

    /// A handler for each path, which must be equal to the request's; 404 for all others.
    pub fn paths<P: Into<String>>(paths: impl IntoIterator<Item = (P, Self)>) -> Self {
        let paths: Vec<(String, Self)> =
            paths.into_iter().map(|(path, handler)| (path.into(), handler)).collect();
        Self(Arc::new(move |request| match paths.iter().find(|(path, _)| path == request.uri().path()) {
            Some((_, handler)) => handler.0(request),
            None => std::future::ready(not_found()).boxed(),
        }))
    }

    /// Answers one request.
    pub async fn handle(&self, request: Request) -> Response {
        // The function itself may panic as well as its future.
        let answering = AssertUnwindSafe(async { self.0(request).await });
        answering.catch_unwind().await.unwrap_or_else(|_| {
            tracing::error!("a handler panicked");
            text(StatusCode::INTERNAL_SERVER_ERROR, "internal server error\n")
        })
    }
}

/// An answer in plain text, with the headers that Go's servers give it.
pub fn text(status: StatusCode, body: impl Into<Bytes>) -> Response {
    let mut response = http::Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// The answer for a path that is not there.
pub fn not_found() -> Response {
    text(StatusCode::NOT_FOUND, "404 page not found\n")
}

/// A server could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Somebody else has the port.
    #[error(
        "{flag}: {address} is in use; stop what listens there, or give another address \
         (port 0 is any that is free, \"0\" alone serves nothing)"
    )]
    InUse {
        /// The flag that gave the address.
        flag: &'static str,
        /// The address.
        address: BindAddress,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The address is not ours to listen on.
    #[error(
        "{flag}: cannot listen on {address}; give the address of an interface of this machine, or \":PORT\""
    )]
    Listen {
        /// The flag that gave the address.
        flag: &'static str,
        /// The address.
        address: BindAddress,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Ports below 1024 are for the privileged.
    #[error("{flag}: no permission to listen on {address}; give a port above 1023")]
    Forbidden {
        /// The flag that gave the address.
        flag: &'static str,
        /// The address.
        address: BindAddress,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl BindError {
    fn new(flag: &'static str, address: &BindAddress, source: io::Error) -> Self {
        let address = address.clone();
        match source.kind() {
            io::ErrorKind::AddrInUse => Self::InUse { flag, address, source },
            io::ErrorKind::PermissionDenied => Self::Forbidden { flag, address, source },
            _ => Self::Listen { flag, address, source },
        }
    }
}

/// A server that has its port and waits to be run. Clients can connect already; they are answered once it runs.
///
/// ```
/// use http::StatusCode;
/// use kubewright_runtime::serve::{BindAddress, Handler, Server, text};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let address: BindAddress = "127.0.0.1:0".parse()?;
/// let Some(server) = Server::bind(&address, "--health-probe-bind-address").await? else { return Ok(()) };
/// println!("serving on {}", server.address());
/// let handler = Handler::paths([("/hello", Handler::new(|_| async { text(StatusCode::OK, "hello") }))]);
/// let stop = async { /* a signal, say */ };
/// server.run(handler, stop).await;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    certificates: Option<Certificates>,
    drain: Duration,
}

impl Server {
    /// Takes the port; none if the address is off. `flag` is what the user wrote the address behind, for the error.
    pub async fn bind(address: &BindAddress, flag: &'static str) -> Result<Option<Self>, BindError> {
        let Some(place) = address.host_port() else { return Ok(None) };
        let failed = |source| BindError::new(flag, address, source);
        let listener = if place.host.is_empty() {
            // As Go: IPv6 and IPv4 on one socket, or IPv4 alone where there is no IPv6.
            match TcpListener::bind(("::", place.port)).await {
                Err(error)
                    if !matches!(
                        error.kind(),
                        io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied
                    ) =>
                {
                    TcpListener::bind(("0.0.0.0", place.port)).await
                }
                bound => bound,
            }
        } else {
            TcpListener::bind((place.host.as_str(), place.port)).await
        };
        let listener = listener.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Some(Self { listener, address, certificates: None, drain: DRAIN }))
    }

    /// Where it listens: the port that was found, if any free one was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Speaks TLS, and follows the certificate's files while it runs.
    #[must_use]
    pub fn with_tls(mut self, certificates: Certificates) -> Self {
        self.certificates = Some(certificates);
        self
    }

    /// How long running requests may take after the stop, 30 s unless told.
    #[must_use]
    pub fn with_drain(mut self, drain: Duration) -> Self {
        self.drain = drain;
        self
    }

    /// Serves until `stop`: then it closes the port and idle connections, lets running requests end, and cuts off
    /// what takes longer than the drain.
    pub async fn run(self, handler: Handler, stop: impl Future<Output = ()> + Send) {
        let Self { listener, certificates, drain, .. } = self;
        let tls = certificates.as_ref().map(|certificates| TlsAcceptor::from(certificates.server_config()));
        let follow = async {
            match &certificates {
                Some(certificates) => certificates.watch().await,
                None => std::future::pending().await,
            }
        };
        let mut follow = std::pin::pin!(follow);
        let mut stop = std::pin::pin!(stop);
        let mut connections = JoinSet::new();
        let graceful = GracefulShutdown::new();
        loop {
            let accepted = tokio::select! {
                biased;
                () = &mut stop => break,
                () = &mut follow => continue,
                Some(_) = connections.join_next() => continue,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) => {
                    let (tls, handler, watcher) = (tls.clone(), handler.clone(), graceful.watcher());
                    connections.spawn(connection(stream, tls, handler, watcher).boxed());
                }
                // Out of file descriptors, or a client that left at once: the next one may fare better.
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_AGAIN).await;
                }
            }
        }
        drop(listener);
        if tokio::time::timeout(drain, graceful.shutdown()).await.is_err() {
            tracing::warn!(?drain, "requests that took longer than the drain are cut off");
        }
        connections.shutdown().await;
    }
}

async fn connection(stream: TcpStream, tls: Option<TlsAcceptor>, handler: Handler, watcher: Watcher) {
    // Without this, the second half of an answer waits for the client's acknowledgement of the first.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY could not be set");
    }
    let Some(tls) = tls else { return speak(Box::new(stream), handler, watcher).await };
    match tokio::time::timeout(PATIENCE, tls.accept(stream)).await {
        Ok(Ok(stream)) => speak(Box::new(stream), handler, watcher).await,
        Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
        Err(_) => tracing::debug!("a TLS handshake took too long"),
    }
}

/// With TLS and without it is the same from here on, and compiled once.
async fn speak(stream: Box<dyn Io>, handler: Handler, watcher: Watcher) {
    let service = hyper::service::service_fn(move |request: Request| {
        let handler = handler.clone();
        async move { Ok::<_, Infallible>(handler.handle(request).await) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(PATIENCE);
    if let Err(error) = watcher.watch(http.serve_connection(TokioIo::new(stream), service)).await {
        tracing::debug!(%error, "a connection ended badly");
    }
}
