//! A small HTTP server for probes, metrics and webhooks.
//!
//! [`Server`] owns a socket and its connections. Each server has one [`Handler`]. There is no router, because a server
//! has only a few fixed paths ([`Handler::paths`]). It uses hyper and hyper-util directly: a web framework would add
//! about twenty crates to every operator.
//!
//! It serves HTTP/1.1 only. HTTP/2 has no benefit here and is open to rapid resets (CVE-2023-44487); controller-runtime
//! and kubebuilder disable it too.
//!
//! The invariant: nothing outlives [`Server::run`]. Connections are its tasks, so they end when it ends or is dropped.
//! It reads no flags and makes no decisions about requests.

mod address;
mod idle;
mod limits;
mod stall;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::{HeaderValue, StatusCode, header};
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::certs::Certificates;
use crate::connect::stream::Io;
use crate::panics::{Panic, contain_future};

use idle::{Phase, ReadTimeout};
use limits::{Connections, Place};
use stall::WriteTimeout;

pub use address::{AddressError, BindAddress};
pub use limits::Limits;

/// How long running requests may take after the stop, as in controller-runtime.
const DRAIN: Duration = Duration::from_secs(30);
/// The timeout of a TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(32);
/// How long a client may not read its response.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// The delay after a failed accept, which is usually caused by a lack of file descriptors.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// A request with a streaming body.
pub type Request = http::Request<hyper::body::Incoming>;
/// A response with a complete body.
pub type Response = http::Response<Full<Bytes>>;

/// Handles requests. Cheap to clone.
#[derive(Clone)]
pub struct Handler(Arc<dyn Fn(Request) -> BoxFuture<'static, Response> + Send + Sync>);

impl Handler {
    /// Creates a handler from a function. If it panics, the client gets status 500 and the server continues.
    pub fn new<H, F>(handle: H) -> Self
    where
        H: Fn(Request) -> F + Send + Sync + 'static,
        F: Future<Output = Response> + Send + 'static,
    {
        Self(Arc::new(move |request| handle(request).boxed()))
    }

    /// Routes by exact path; 404 for all others.
    pub fn paths<P: Into<String>>(paths: impl IntoIterator<Item = (P, Self)>) -> Self {
        let paths: Vec<(String, Self)> =
            paths.into_iter().map(|(path, handler)| (path.into(), handler)).collect();
        Self(Arc::new(move |request| match paths.iter().find(|(path, _)| path == request.uri().path()) {
            Some((_, handler)) => handler.0(request),
            None => std::future::ready(not_found()).boxed(),
        }))
    }

    /// Handles one request.
    pub async fn handle(&self, request: Request) -> Response {
        // Both the function and its future may panic.
        let uri = request.uri().clone();
        let answering = contain_future(async { self.0(request).await });
        answering.await.unwrap_or_else(|Panic { message, at, times }| {
            tracing::error!(path = uri.path(), panic = message, at, times, "HTTP handler panicked");
            text(StatusCode::INTERNAL_SERVER_ERROR, "internal server error\n")
        })
    }
}

/// A plain text response, with the headers that Go's servers set.
pub fn text(status: StatusCode, body: impl Into<Bytes>) -> Response {
    let mut response = http::Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// The response for an unknown path.
pub fn not_found() -> Response {
    text(StatusCode::NOT_FOUND, "404 page not found\n")
}

/// A server cannot listen on its address.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// The address is in use.
    #[error(
        "{flag}: {address} is already in use; stop the process that listens there, or choose another address \
         (port 0 picks a free port, \"0\" disables the server)"
    )]
    InUse {
        /// The flag that gave the address.
        flag: &'static str,
        /// The address.
        address: BindAddress,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The address does not belong to this machine.
    #[error("{flag}: cannot listen on {address}; use an address of this machine, or \":PORT\"")]
    Listen {
        /// The flag that gave the address.
        flag: &'static str,
        /// The address.
        address: BindAddress,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// Ports below 1024 need privileges.
    #[error("{flag}: no permission to listen on {address}; use a port above 1023")]
    Forbidden {
        /// The flag that gave the address.
        flag: &'static str,
        /// The address.
        address: BindAddress,
        /// The cause.
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

/// A server that is bound and not yet running. Clients can already connect; they get responses once it runs.
///
/// ```
/// use http::StatusCode;
/// use kubewright_runtime::internal::serve::{BindAddress, Handler, Server, text};
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
    write_timeout: Duration,
    limits: Limits,
}

impl Server {
    /// Binds the address; `None` if it is off. `flag` is the flag that set the address, for the error.
    pub async fn bind(address: &BindAddress, flag: &'static str) -> Result<Option<Self>, BindError> {
        let Some(place) = address.host_port() else { return Ok(None) };
        let failed = |source| BindError::new(flag, address, source);
        let listener = if place.host.is_empty() {
            // As in Go: one socket for IPv6 and IPv4, or IPv4 only where there is no IPv6.
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
        Ok(Some(Self {
            listener,
            address,
            certificates: None,
            drain: DRAIN,
            write_timeout: WRITE_TIMEOUT,
            limits: Limits::default(),
        }))
    }

    /// The address it listens on, with the assigned port if port 0 was configured.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves TLS, and reloads the certificate files while it runs.
    #[must_use]
    pub fn with_tls(mut self, certificates: Certificates) -> Self {
        self.certificates = Some(certificates);
        self
    }

    /// How long running requests may take after the stop; 30 s by default.
    #[must_use]
    pub fn with_drain(mut self, drain: Duration) -> Self {
        self.drain = drain;
        self
    }

    /// How long a client may not read its response; 30 s by default.
    #[must_use]
    pub fn with_write_timeout(mut self, timeout: Duration) -> Self {
        self.write_timeout = timeout;
        self
    }

    /// How many connections are open at the same time.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Serves until `stop`. Then it closes the port and idle connections, and waits for running requests for at most
    /// the drain time.
    pub async fn run(self, handler: Handler, stop: impl Future<Output = ()> + Send) {
        let Self { listener, certificates, drain, write_timeout, limits, .. } = self;
        let open = Connections::new(limits);
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
                Ok((stream, peer)) => {
                    let Some(place) = open.enter(peer.ip()) else {
                        tracing::debug!(%peer, "Too many connections; closing the new one");
                        continue;
                    };
                    let stream = Accepted { stream, write_timeout, place };
                    let (tls, handler, watcher) = (tls.clone(), handler.clone(), graceful.watcher());
                    connections.spawn(connection(stream, tls, handler, watcher).boxed());
                }
                // Out of file descriptors, or the client has disconnected already.
                Err(error) => {
                    tracing::warn!(%error, "Failed to accept connection");
                    tokio::time::sleep(ACCEPT_AGAIN).await;
                }
            }
        }
        drop(listener);
        if tokio::time::timeout(drain, graceful.shutdown()).await.is_err() {
            tracing::warn!(?drain, "Drain timeout exceeded; closing connections with running requests");
        }
        connections.shutdown().await;
    }
}

/// A connection that the server has accepted.
struct Accepted {
    stream: TcpStream,
    write_timeout: Duration,
    place: Place,
}

async fn connection(accepted: Accepted, tls: Option<TlsAcceptor>, handler: Handler, watcher: Watcher) {
    let Accepted { stream, write_timeout, place: _place } = accepted;
    // Otherwise the second part of a response waits for the client's acknowledgement of the first.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "Failed to set TCP_NODELAY");
    }
    let stream = WriteTimeout::new(stream, write_timeout);
    let Some(tls) = tls else { return speak(Box::new(stream), handler, watcher).await };
    match tokio::time::timeout(HANDSHAKE, tls.accept(stream)).await {
        Ok(Ok(stream)) => speak(Box::new(stream), handler, watcher).await,
        Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
        Err(_) => tracing::debug!("TLS handshake timed out"),
    }
}

/// Boxed, so that the code is compiled once for TLS and plain connections.
async fn speak(stream: Box<dyn Io>, handler: Handler, watcher: Watcher) {
    let phase = Phase::new();
    let stream = ReadTimeout::new(stream, phase.clone());
    let service = hyper::service::service_fn(move |request: Request| {
        let (handler, phase) = (handler.clone(), phase.clone());
        phase.begun();
        async move {
            let response = handler.handle(request).await;
            phase.ended();
            Ok::<_, Infallible>(response)
        }
    });
    let mut http = http1::Builder::new();
    http.header_read_timeout(None);
    if let Err(error) = watcher.watch(http.serve_connection(TokioIo::new(stream), service)).await {
        tracing::debug!(%error, "Connection failed");
    }
}
