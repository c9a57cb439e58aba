//! The connection to the API server.
//!
//! [`client`] creates a [`kube::Client`] over our own transport. kube's default transport uses HTTP/1.1 only: each
//! watch has its own connection, and a peer that dies silently goes unnoticed. Here requests and watches share one
//! HTTP/2 connection per hundred concurrent requests, which is kube-apiserver's limit. While the first connection is
//! being established there may briefly be more, as with Go's client. Invariant: **a dead peer is detected within 15 s,
//! an idle one is kept.**
//!
//! - HTTP/2: a ping after 5 s without data, also without requests, with a timeout of 10 s. An unanswered ping closes
//!   the connection and all its watches.
//! - HTTP/1.1, if the server or a proxy does not support HTTP/2: TCP keepalive (5 s idle, then 3 probes 3 s apart), and
//!   `TCP_USER_TIMEOUT` for unacknowledged data.
//! - A request has a deadline ([`Options::request_timeout`]) for its whole response. A watch has none: it may be idle
//!   for as long as nothing changes.
//!
//! Kept from kube's stack: base URI, token refresh, extra and impersonation headers, reloading of CA files, the TLS
//! server name, tunnels through HTTP proxies. Retries follow client-go instead: kube's policy retries any request after
//! 429, 503 and 504, so that one `create` can become two POSTs. A [`kube::Config`] without `default_retry` disables
//! retries.
//!
//! Requests that upgrade the connection (`exec`, `attach`) use HTTP/1.1. Not supported are SOCKS proxies and the
//! `auth-provider` of old kubeconfigs, which kubectl 1.26 removed in favor of exec plugins.
//!
//! This module calls neither kube's client stack nor its kubeconfig loader, so that the linker drops them; they would
//! be a fifth of the binary.
//!
//! [`infer`] finds the cluster. Two settings of kube have a different meaning here: `read_timeout` limits the wait for
//! the response headers, not the idle time of a watch, and `write_timeout` is ignored in favor of pings and TCP
//! options. [`kube::Client::valid_until`] is not set.

mod agent;
mod auth;
pub(crate) mod deadline;
mod infer;
mod kubeconfig;
mod observe;
mod pool;
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
pub use observe::ClientMetrics;
#[doc(hidden)]
pub use observe::{Observe, ObserveLayer};
pub use tls::TlsError;

use auth::{Authorize, Credentials};
use deadline::Deadline;
use retry::Retries;
use tls::Identity;
use transport::Transport;

use crate::SystemClock;

/// Options of a client, in addition to the [`kube::Config`].
///
/// ```
/// use kubewright_runtime::connect::{Options, user_agent};
///
/// let options = Options { user_agent: user_agent("markdown-view", "0.3.0"), ..Options::default() };
/// assert!(options.user_agent.starts_with("markdown-view/0.3.0 ("));
/// ```
#[derive(Debug, Clone)]
pub struct Options {
    /// The user agent, which appears in the API server's audit log. See [`user_agent`]. A `User-Agent` in the headers
    /// of the [`kube::Config`] takes precedence.
    pub user_agent: String,
    /// The request metrics, if enabled.
    pub metrics: Option<ClientMetrics>,
    /// The deadline of a request, including retries and the whole response; `None` for no deadline. Watches, streamed
    /// lists, logs, `exec` and other streams have no deadline.
    pub request_timeout: Option<Duration>,
    /// Whether to use HTTP/2. Without it, each watch has its own connection.
    pub http2: bool,
    /// The maximum number of concurrent requests and watches per connection. It must not exceed the server's limit:
    /// excess requests would wait for a watch to end.
    pub requests_per_connection: usize,
    /// The idle time after which an HTTP/2 connection is pinged.
    pub ping_interval: Duration,
    /// The timeout of a ping.
    pub ping_timeout: Duration,
    /// The idle time before the first TCP keepalive probe.
    pub keepalive_idle: Duration,
    /// The time between keepalive probes.
    pub keepalive_interval: Duration,
    /// The number of unanswered probes after which the connection is dead.
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
    /// How long sent data may stay unacknowledged.
    ///
    /// On Linux this overrides the number of keepalive probes and is checked at each probe. Half an interval less than
    /// the time of the last probe closes the connection at exactly that probe.
    fn tcp_user_timeout(&self) -> Duration {
        let last_probe = self.keepalive_idle + self.keepalive_interval * self.keepalive_probes;
        last_probe.saturating_sub(self.keepalive_interval / 2)
    }
}

/// A client could not be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The user agent is not a valid header.
    #[error("the user agent {0:?} is not a valid header; use printable ASCII")]
    UserAgent(String, #[source] http::header::InvalidHeaderValue),
    /// The TLS server name is invalid.
    #[error("tls-server-name {0:?} is neither a DNS name nor an address; correct the kubeconfig")]
    ServerName(String, #[source] rustls_pki_types::InvalidDnsNameError),
    /// The proxy is not supported.
    #[error(
        "the proxy {0} is not supported; use an HTTP proxy in the form http://HOST:PORT or https://HOST:PORT"
    )]
    Proxy(String),
    /// Certificates or keys are invalid.
    #[error("invalid TLS configuration of the cluster")]
    Tls(#[from] TlsError),
    /// The credentials are missing or invalid.
    #[error("failed to load the credentials for the cluster")]
    Auth(#[from] AuthError),
    /// A header of the configuration is invalid.
    #[error("invalid client configuration")]
    Config(#[source] kube::Error),
}

/// The tower service below a client. It takes requests with a path and sends them to the cluster.
pub type ApiService = BoxService<Request<Body>, Response<Box<DynBody>>, BoxError>;

/// Creates a client. The first request opens the connection. An exec plugin runs once before this returns. Must be
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

/// Like [`client`], but returns the builder, for callers that add their own layers.
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
