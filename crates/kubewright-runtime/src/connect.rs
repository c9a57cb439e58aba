//! The connection to the API server.
//!
//! [`client`] makes a [`kube::Client`] over a transport of our own. kube's is HTTP/1.1 only: one connection for each
//! watch, and a peer that died in silence is noticed by nobody. Here requests and watches share one HTTP/2 connection,
//! or one for every hundred that run at once, which is what kube-apiserver allows. While the first is being made there
//! may be more for a moment, as with Go's client. The invariant: **a dead peer is noticed within 15 s, a quiet one is
//! left alone.**
//!
//! - HTTP/2: a ping after 5 s without a byte, 10 s for its answer, while nothing is asked as well. A ping that is not
//!   answered ends the connection, and with it every watch on it.
//! - HTTP/1.1, where the server or a proxy speaks no HTTP/2: TCP keepalive (5 s idle, then 3 probes 3 s apart), and
//!   `TCP_USER_TIMEOUT` for what was sent and not acknowledged.
//! - A request has a deadline ([`Options::request_timeout`]), up to the last byte of its answer. A watch has none: it may
//!   be quiet for as long as nothing changes.
//!
//! What kube's stack does is kept: base URI, tokens that are refreshed, extra and impersonation headers, CA files that
//! are read again, the server's name for TLS, tunnels through HTTP proxies. Retries follow client-go instead: kube's
//! policy sends any request again after 429, 503 and 504, so that one `create` can be two POSTs. A
//! [`kube::Config`] without `default_retry` has no retries.
//!
//! Requests that upgrade the connection (`exec`, `attach`) go over HTTP/1.1, which alone can. Two things are refused:
//! SOCKS proxies, and the `auth-provider` of old kubeconfigs, which kubectl 1.26 dropped for exec plugins.
//!
//! Nothing of kube's own stack or of its kubeconfig is called: what is not reached is not linked, and they are a fifth
//! of a program.
//!
//! Where the cluster is, [`infer`] finds out. Of kube's settings two mean something else here: `read_timeout` bounds
//! the wait for the head of an answer, not a watch's silence, and `write_timeout` is left to pings and the kernel.
//! [`kube::Client::valid_until`] is not set.

mod agent;
mod auth;
pub(crate) mod deadline;
mod infer;
mod kubeconfig;
mod lanes;
mod observe;
mod proxy;
pub(crate) mod retry;
pub(crate) mod stream;
mod tls;
mod transport;
mod warnings;
mod yaml;

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Request, Response, header};
use kube::client::{Body, ClientBuilder, ConfigExt as _, DynBody};
use tower::retry::RetryLayer;
use tower::util::BoxService;
use tower::{BoxError, ServiceBuilder, ServiceExt as _};

pub use agent::user_agent;
pub use auth::{AuthError, PluginError};
pub use infer::{InferError, Source, infer};
pub use kubeconfig::KubeconfigError;
pub use observe::{ClientMetrics, Observe, ObserveLayer};
pub use tls::TlsError;

use auth::{Authorize, Credentials};
use deadline::Deadline;
use retry::Retries;
use tls::Identity;
use transport::Transport;

use crate::SystemClock;

/// What a client is made with, besides where the cluster is.
///
/// ```
/// use kubewright_runtime::connect::{Options, user_agent};
///
/// let options = Options { user_agent: user_agent("markdown-view", "0.3.0"), ..Options::default() };
/// assert!(options.user_agent.starts_with("markdown-view/0.3.0 ("));
/// ```
#[derive(Debug, Clone)]
pub struct Options {
    /// Who asks, as the API server's audit log shows it. See [`user_agent`]. A `User-Agent` among the headers of the
    /// [`kube::Config`] wins.
    pub user_agent: String,
    /// Where requests are counted, if anywhere.
    pub metrics: Option<ClientMetrics>,
    /// The deadline of a request, with all its retries and its whole answer; none if there is none. Watches, streamed
    /// lists, logs, `exec` and the like have no deadline.
    pub request_timeout: Option<Duration>,
    /// Is HTTP/2 offered? Off, each watch has a connection of its own.
    pub http2: bool,
    /// How many requests, watches among them, share a connection. It must not be more than the server allows on one:
    /// those above would wait for a watch to end.
    pub requests_per_connection: usize,
    /// When an HTTP/2 connection without a byte is asked whether it is alive.
    pub ping_interval: Duration,
    /// How long that may take to answer.
    pub ping_timeout: Duration,
    /// When the kernel asks a TCP connection without a byte.
    pub keepalive_idle: Duration,
    /// How long it waits to ask again.
    pub keepalive_interval: Duration,
    /// How often it asks before the connection is dead.
    pub keepalive_probes: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            user_agent: user_agent(&agent::program(), "unknown"),
            metrics: None,
            request_timeout: Some(Duration::from_secs(30)),
            http2: true,
            requests_per_connection: 100,
            ping_interval: Duration::from_secs(5),
            ping_timeout: Duration::from_secs(10),
            keepalive_idle: Duration::from_secs(5),
            keepalive_interval: Duration::from_secs(3),
            keepalive_probes: 3,
        }
    }
}

impl Options {
    /// When what was sent and not acknowledged ends a connection.
    ///
    /// Linux lets this override the number of keepalive probes, and compares at each probe. Half an interval less
    /// than the last probe's time makes that probe the one that decides.
    fn tcp_user_timeout(&self) -> Duration {
        let last_probe = self.keepalive_idle + self.keepalive_interval * self.keepalive_probes;
        last_probe.saturating_sub(self.keepalive_interval / 2)
    }
}

/// A client could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The user agent cannot be sent.
    #[error("the user agent {0:?} cannot be a header; use printable ASCII")]
    UserAgent(String, #[source] http::header::InvalidHeaderValue),
    /// The name that the server's certificate is for is none.
    #[error("tls-server-name {0:?} is neither a DNS name nor an address; correct the kubeconfig")]
    ServerName(String, #[source] rustls_pki_types::InvalidDnsNameError),
    /// The proxy is of a kind that is not known.
    #[error(
        "the proxy {0} cannot be used; it must know CONNECT and be written as http://HOST:PORT or https://HOST:PORT"
    )]
    Proxy(String),
    /// Certificates or keys cannot be used.
    #[error("TLS cannot be spoken with the cluster")]
    Tls(#[from] TlsError),
    /// There are no credentials.
    #[error("there are no credentials for the cluster")]
    Auth(#[from] AuthError),
    /// Headers of the configuration cannot be sent.
    #[error("the cluster's configuration cannot be used to connect")]
    Config(#[source] kube::Error),
}

/// The tower service below a client: takes requests with a path, and answers from the cluster.
pub type ApiService = BoxService<Request<Body>, Response<Box<DynBody>>, BoxError>;

/// Makes a client. Nothing is sent yet: the first request connects. An exec plugin runs once, and is waited for. Must be
/// called within a tokio runtime.
///
/// ```no_run
/// use kubewright_runtime::connect::{self, Options, Source};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let config = connect::infer(&Source::default()).await?;
/// let client = connect::client(config, Options::default())?;
/// println!("{:?}", client.apiserver_version().await?);
/// # Ok(())
/// # }
/// ```
pub fn client(config: kube::Config, options: Options) -> Result<kube::Client, ConnectError> {
    Ok(builder(config, options)?.build())
}

/// As [`client`], for those who put layers of their own on top.
pub fn builder(
    mut config: kube::Config,
    options: Options,
) -> Result<ClientBuilder<ApiService>, ConnectError> {
    if !config.headers.iter().any(|(name, _)| name == header::USER_AGENT) {
        let agent = HeaderValue::from_str(&options.user_agent)
            .map_err(|error| ConnectError::UserAgent(options.user_agent.clone(), error))?;
        config.headers.push((header::USER_AGENT, agent));
    }
    let namespace = config.default_namespace.clone();
    Ok(ClientBuilder::new(service(&config, options)?, namespace))
}

fn service(config: &kube::Config, options: Options) -> Result<ApiService, ConnectError> {
    let identity = Arc::new(Identity::of(&config.auth_info)?);
    let credentials = Credentials::of(&config.auth_info, &identity, Arc::new(SystemClock))?;
    let transport = Transport::new(config, &options, identity)?;
    let within = options.request_timeout;
    let retry = config.default_retry.then(|| RetryLayer::new(Retries::new(options.metrics.clone(), within)));
    let service = ServiceBuilder::new()
        .layer_fn(|inner| Deadline::new(inner, within))
        .layer(config.base_uri_layer())
        .option_layer(retry)
        .layer_fn(|inner| Authorize::new(inner, credentials.clone()))
        .layer(config.extra_headers_layer().map_err(ConnectError::Config)?)
        .layer(ObserveLayer::new(options.metrics))
        .service(transport)
        .map_response(|response: Response<_>| response.map(|body| Box::new(body) as Box<DynBody>));
    Ok(BoxService::new(service))
}
