//! Serves an [`ApiServer`] on a socket: TLS, client certificates, HTTP/1.1 and HTTP/2.

mod tls_writer;

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use kubewright_apimachinery::duration::parse_go_duration;
use kubewright_apimachinery::status::ApiError;
use kubewright_sync::ordered_watch;
use ring::digest;
use rustls::server::{ServerConfig, WebPkiClientVerifier};
use rustls::{RootCertStore, SupportedCipherSuite};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tower_service::Service as _;

use crate::authn::{MASTERS, User};
use crate::certs::{Authority, CertificateError, Identity};
use crate::encoding::body::Body;
use crate::encoding::{request_body, response};
use crate::request::{OverSocket, Query, is_long_running};
use crate::server::ApiServer;
use tls_writer::TlsWriter;

/// Maximum concurrent streams of an HTTP/2 connection: client-go uses one connection for all its watches.
const MAX_STREAMS: u32 = 2_000;
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 16 << 20;
/// Time for the TLS handshake, and then for the first request.
const HANDSHAKE: Duration = Duration::from_secs(10);
const FIRST_REQUEST: Duration = Duration::from_secs(30);
/// Time for the header of a request, as kube-apiserver's `ReadHeaderTimeout`.
const HEADER: Duration = Duration::from_secs(32);
/// Deadline of requests that are not long-running: kube-apiserver's `--request-timeout`.
const REQUEST: Duration = Duration::from_mins(1);
/// Pauses of the accept loop after errors, such as too many open files.
const MIN_PAUSE: Duration = Duration::from_millis(5);
const MAX_PAUSE: Duration = Duration::from_secs(1);
/// Time for running requests to finish on shutdown.
const DRAIN: Duration = Duration::from_millis(500);

/// The server could not be started.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Binding the address failed.
    #[error("cannot listen on {address}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A certificate could not be created.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// The TLS configuration is invalid.
    #[error("failed to configure TLS")]
    Tls(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A given certificate or key is not valid PEM.
    #[error("the {what} is not valid PEM")]
    Pem {
        /// The name of the file.
        what: &'static str,
        /// The cause.
        #[source]
        source: rustls_pki_types::pem::Error,
    },
    /// The address is not a loopback address.
    #[error("{0} is not a loopback address; the embedded server listens on loopback only")]
    NotLoopback(SocketAddr),
}

/// Given certificates in PEM, as in kube-apiserver's flags.
#[derive(Debug, Clone)]
pub struct Certificates {
    /// The serving certificate, followed by intermediate certificates.
    pub server: Vec<u8>,
    /// Its key.
    pub key: Vec<u8>,
    /// The CAs of client certificates. Without them, no client certificate is requested.
    pub clients: Option<Vec<u8>>,
}

/// A server that listens on a socket. Dropping it stops it immediately; [`Serving::close`] waits for
/// requests.
pub struct Serving {
    address: SocketAddr,
    stop: ordered_watch::Sender<bool>,
    task: tokio::task::JoinHandle<()>,
}

impl Serving {
    /// Serves `server` on a loopback address with the given certificates.
    pub async fn open_at(
        server: ApiServer,
        address: SocketAddr,
        certificates: &Certificates,
    ) -> Result<Self, ServeError> {
        let pem = |what| move |source| ServeError::Pem { what, source };
        let chain = all_certificates(&certificates.server).map_err(pem("server's certificate"))?;
        let key = PrivateKeyDer::from_pem_slice(&certificates.key)
            .map_err(pem("key of the server's certificate"))?;
        let clients = match &certificates.clients {
            None => Vec::new(),
            Some(bundle) => all_certificates(bundle).map_err(pem("authority of client certificates"))?,
        };
        let bound = Bound::new(address).await?;
        Ok(bound.serve(server, tls_config(chain, key, clients)?))
    }

    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops listening, waits for running requests, and closes the remaining connections.
    pub async fn close(self) {
        self.stop.send_replace(true);
        let _ = self.task.await;
    }
}

/// A bound address. Bound before the certificate is issued, because the certificate contains the address.
struct Bound {
    listener: TcpListener,
    address: SocketAddr,
}

impl Bound {
    async fn new(address: SocketAddr) -> Result<Self, ServeError> {
        if !address.ip().is_loopback() {
            return Err(ServeError::NotLoopback(address));
        }
        let failed = |source| ServeError::Bind { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address })
    }

    fn serve(self, server: ApiServer, tls: Arc<ServerConfig>) -> Serving {
        let (stop, stopped) = ordered_watch::channel(false);
        server.listen_at(&format!("https://{}", self.address));
        let task = tokio::spawn(accept(self.listener, TlsAcceptor::from(tls), server, stopped));
        Serving { address: self.address, stop, task }
    }
}

/// The certificates of a bundle; an empty bundle is an error.
fn all_certificates(bundle: &[u8]) -> Result<Vec<CertificateDer<'static>>, rustls_pki_types::pem::Error> {
    let found = CertificateDer::pem_slice_iter(bundle).collect::<Result<Vec<_>, _>>()?;
    if found.is_empty() { Err(rustls_pki_types::pem::Error::NoItemsFound) } else { Ok(found) }
}

/// A server that listens with generated certificates.
pub struct Listening {
    serving: Serving,
    authority: Arc<Authority>,
    admin: Identity,
}

impl Listening {
    /// Serves `server` on a port of 127.0.0.1. Port 0 selects a free port.
    pub async fn open(server: ApiServer, port: u16) -> Result<Self, ServeError> {
        Self::open_at(server, SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)).await
    }

    /// As [`Listening::open`], on another loopback address.
    pub async fn open_at(server: ApiServer, address: SocketAddr) -> Result<Self, ServeError> {
        let bound = Bound::new(address).await?;
        let authority = server.authority()?;
        let admin = authority.client("admin", &[MASTERS])?;
        let service = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
        let identity = authority.server(&[bound.address.ip(), service])?;
        let chain = vec![identity.cert, authority.der().clone()];
        let tls = tls_config(chain, identity.key, vec![authority.der().clone()])?;
        Ok(Self { serving: bound.serve(server, tls), authority, admin })
    }

    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.serving.address
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("https://{}", self.serving.address)
    }

    /// The CA of its certificates.
    pub fn authority(&self) -> &Authority {
        &self.authority
    }

    /// The administrator's client certificate.
    pub fn admin(&self) -> &Identity {
        &self.admin
    }

    /// A kubeconfig for the administrator.
    pub fn kubeconfig(&self) -> String {
        kubeconfig(&self.url(), self.authority.pem(), &self.admin)
    }

    /// Stops listening, waits for running requests, and closes the remaining connections.
    pub async fn close(self) {
        self.serving.close().await;
    }
}

/// A kubeconfig with one cluster and one user.
pub fn kubeconfig(url: &str, authority: &str, identity: &Identity) -> String {
    let encode = |pem: &str| STANDARD.encode(pem);
    format!(
        "apiVersion: v1\nkind: Config\nclusters:\n- name: kubewright\n  cluster:\n    server: {url}\n    \
         certificate-authority-data: {}\nusers:\n- name: admin\n  user:\n    client-certificate-data: {}\n    \
         client-key-data: {}\ncontexts:\n- name: kubewright\n  context:\n    cluster: kubewright\n    user: admin\n\
         current-context: kubewright\n",
        encode(authority),
        encode(&identity.cert_pem),
        encode(&identity.key_pem),
    )
}

fn tls_config(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    clients: Vec<CertificateDer<'static>>,
) -> Result<Arc<ServerConfig>, ServeError> {
    let failed = |error: Box<dyn std::error::Error + Send + Sync>| ServeError::Tls(error);
    let mut provider = rustls::crypto::ring::default_provider();
    // Prefer AES-128, as Go's servers do: it is the fastest and strong enough.
    provider.cipher_suites.sort_by_key(|suite| !is_aes_128(*suite));
    let provider = Arc::new(provider);
    let config = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(error.into()))?;
    let config = if clients.is_empty() {
        config.with_no_client_auth()
    } else {
        let mut roots = RootCertStore::empty();
        for authority in clients {
            roots.add(authority).map_err(|error| failed(error.into()))?;
        }
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            .allow_unauthenticated()
            .build()
            .map_err(|error| failed(error.into()))?;
        config.with_client_cert_verifier(verifier)
    };
    let mut config = config.with_single_cert(chain, key).map_err(|error| failed(error.into()))?;
    config.ignore_client_order = true;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn is_aes_128(suite: SupportedCipherSuite) -> bool {
    use rustls::CipherSuite::{
        TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
        TLS13_AES_128_GCM_SHA256,
    };
    matches!(
        suite.suite(),
        TLS13_AES_128_GCM_SHA256
            | TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
            | TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256
    )
}

async fn accept(
    listener: TcpListener,
    tls: TlsAcceptor,
    server: ApiServer,
    mut stopped: ordered_watch::Receiver<bool>,
) {
    let mut connections = JoinSet::new();
    let graceful = GracefulShutdown::new();
    let mut pause = MIN_PAUSE;
    loop {
        let accepted = tokio::select! {
            biased;
            _ = stopped.wait_for(|stop| *stop) => break,
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
        };
        match accepted {
            Ok((stream, _)) => {
                pause = MIN_PAUSE;
                connections.spawn(connection(stream, tls.clone(), server.clone(), graceful.watcher()));
            }
            // The client has disconnected.
            Err(error) if is_of_client(&error) => {}
            // For example out of file descriptors: wait until other connections are closed.
            Err(error) => {
                tracing::warn!(%error, retry_in = ?pause, "failed to accept connection");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(MAX_PAUSE);
            }
        }
    }
    drop(listener);
    // Watches do not end by themselves, so the remaining connections are aborted.
    let _ = tokio::time::timeout(DRAIN, graceful.shutdown()).await;
    connections.shutdown().await;
}

/// Whether an accept failed because of the connection and not of the listener.
fn is_of_client(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

async fn connection(
    stream: TcpStream,
    tls: TlsAcceptor,
    server: ApiServer,
    watcher: hyper_util::server::graceful::Watcher,
) {
    let peer = stream.peer_addr().ok().map(|address| address.ip());
    // Otherwise Nagle's algorithm delays small responses.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "failed to set TCP_NODELAY");
    }
    let stream = match tokio::time::timeout(HANDSHAKE, tls.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            tracing::debug!(%error, "TLS handshake failed");
            return;
        }
        Err(_) => {
            tracing::debug!("TLS handshake timed out");
            return;
        }
    };
    let user = stream
        .get_ref()
        .1
        .peer_certificates()
        .and_then(|chain| chain.first())
        .and_then(|certificate| user_of(certificate))
        .unwrap_or_else(User::anonymous);
    let requested = Arc::new(AtomicBool::new(false));
    let seen = requested.clone();
    let service = hyper::service::service_fn(move |mut request: http::Request<hyper::body::Incoming>| {
        seen.store(true, Ordering::Relaxed);
        request.extensions_mut().insert(user.clone());
        request.extensions_mut().insert(OverSocket { peer });
        within_deadline(server.clone(), request)
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADER);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .keep_alive_interval(Duration::from_secs(30));
    let wire = TlsWriter::new(stream);
    let serving = builder.serve_connection(TokioIo::new(wire.clone()), service);
    let silent = async {
        tokio::time::sleep(FIRST_REQUEST).await;
        if requested.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        ended = wire.serve(watcher.watch(serving.into_owned())) => {
            if let Err(error) = ended {
                tracing::debug!(%error, "connection failed");
            }
        }
        () = silent => tracing::debug!("closing idle connection: no request received"),
    }
}

/// Handles a request. One that is not long-running has a deadline.
async fn within_deadline(
    mut server: ApiServer,
    mut request: http::Request<hyper::body::Incoming>,
) -> Result<http::Response<Body>, Infallible> {
    if is_long_running(request.method(), request.uri()) {
        return server.call(request).await;
    }
    let timeout = match request_timeout(request.uri()) {
        Ok(timeout) => timeout,
        Err(error) => {
            let mut response = response::failure(&error);
            let is_http1 = request.version() <= http::Version::HTTP_11;
            if is_http1 && !request_body::drain(request.body_mut()).await {
                let close = http::HeaderValue::from_static("close");
                response.headers_mut().insert(http::header::CONNECTION, close);
            }
            return Ok(response);
        }
    };
    if let Ok(response) = tokio::time::timeout(timeout, server.call(request)).await {
        response
    } else {
        let why = "Timeout: request did not complete within the allotted timeout";
        Ok(response::failure(&ApiError::new(504, "Timeout", why)))
    }
}

/// The parameter `timeout` as upstream reads it: at most the default. Zero and negative values mean the default.
fn request_timeout(uri: &http::Uri) -> Result<Duration, ApiError> {
    let query = Query::parse(uri.query().unwrap_or_default());
    let Some(text) = query.get("timeout").filter(|text| !text.is_empty()) else { return Ok(REQUEST) };
    let nanos = parse_go_duration(text).map_err(|error| {
        ApiError::bad_request(format!("invalid timeout specified in the request URL - {error}"))
    })?;
    Ok(match u64::try_from(nanos) {
        Ok(nanos) if nanos > 0 => Duration::from_nanos(nanos).min(REQUEST),
        _ => REQUEST,
    })
}

/// The user of a client certificate: the common name, and the organizations as groups.
fn user_of(certificate: &[u8]) -> Option<User> {
    let (_, parsed) = x509_parser::parse_x509_certificate(certificate).ok()?;
    let subject = parsed.subject();
    let name = subject.iter_common_name().next()?.as_str().ok()?.to_owned();
    let groups = subject.iter_organization().filter_map(|group| group.as_str().ok().map(str::to_owned));
    let mut user = User::authenticated(name, groups);
    let digest = sha256(certificate);
    user.extra.insert(
        "authentication.kubernetes.io/credential-id".to_owned(),
        vec![format!("X509SHA256={digest}")],
    );
    Some(user)
}

fn sha256(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut hex = String::new();
    for byte in digest::digest(&digest::SHA256, bytes).as_ref() {
        write!(hex, "{byte:02x}").unwrap_or_default();
    }
    hex
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timeout_of_a_request_is_at_most_the_default() {
        let timeout = |query: &str| request_timeout(&format!("/api?{query}").parse().unwrap());
        for (query, expected) in [
            ("", REQUEST),
            ("timeout=", REQUEST),
            ("timeout=5s", Duration::from_secs(5)),
            ("timeout=1m30s", REQUEST),
            ("timeout=0", REQUEST),
            ("timeout=-1s", REQUEST),
            ("timeout=1ms&timeout=2s", Duration::from_millis(1)),
        ] {
            assert_eq!(timeout(query).ok(), Some(expected), "{query}");
        }
        let error = timeout("timeout=5").unwrap_err();
        assert_eq!(error.code, 400);
        assert_eq!(
            error.message,
            "invalid timeout specified in the request URL - time: missing unit in duration \"5\""
        );
    }
}
