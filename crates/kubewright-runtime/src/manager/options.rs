//! Options of a manager. The operator's entry point fills them from its flags.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::cache::CacheOptions;
use crate::controller::ControllerOptions;
use crate::metrics::Metrics;
use crate::serve::BindAddress;
use crate::webhook::WebhookOptions;
use crate::{Clock, LeaderElectionOptions, SystemClock};

/// Options of a manager.
///
/// ```
/// use kubewright_runtime::{LeaderElectionOptions, ManagerOptions};
///
/// let options = ManagerOptions {
///     health_probe_bind_address: ":8081".parse()?,
///     leader_election: Some(LeaderElectionOptions::new("guestbook.example.com")),
///     ..ManagerOptions::new("guestbook")
/// };
/// # Ok::<(), kubewright_runtime::AddressError>(())
/// ```
#[derive(Clone)]
pub struct ManagerOptions {
    /// The name of the operator: the field manager of its writes and the reporting controller of its events.
    pub name: String,
    /// Options of the cache; `cache.namespaces` are the namespaces that the operator watches.
    pub cache: CacheOptions,
    /// The address of `/metrics`; off by default.
    pub metrics_bind_address: BindAddress,
    /// Whether to serve metrics over TLS, with authentication and authorization by the API server.
    pub metrics_secure: bool,
    /// The directory of the certificate and key for the metrics server; defaults to a self-signed certificate.
    pub metrics_cert_path: Option<PathBuf>,
    /// The file name of the certificate in that directory.
    pub metrics_cert_name: String,
    /// The file name of its key.
    pub metrics_cert_key: String,
    /// The address of `/healthz` and `/readyz`; off by default.
    pub health_probe_bind_address: BindAddress,
    /// The address of the pprof endpoints, without authentication; off by default. Needs the feature `profiling`.
    pub pprof_bind_address: BindAddress,
    /// The address of the debug page; off by default. It uses TLS, authentication and authorization as metrics do, with
    /// [`ManagerOptions::metrics_secure`] and the certificate of the metrics server. Without `metrics_secure`, it must be a
    /// loopback address. Needs the feature `debug-page` of `kubewright`.
    pub debug_page_bind_address: BindAddress,
    /// Options of the webhook server. By default, webhooks are registered but not served.
    pub webhooks: WebhookOptions,
    /// The default options of all controllers.
    pub controllers: ControllerOptions,
    /// Leader election; if `None`, every replica runs all controllers.
    pub leader_election: Option<LeaderElectionOptions>,
    /// Graceful shutdown timeout; `None` waits forever.
    pub graceful_shutdown_timeout: Option<Duration>,
    /// The address of a program that receives a journal of reconciles and webhook calls; off by default.
    pub journal: Option<SocketAddr>,
    /// The token that the receiver of the journal expects.
    pub journal_token: Option<String>,
    /// Whether events that differ only in their notes are aggregated into one Event; see
    /// [`Recorder::ignoring_notes`](crate::events::Recorder::ignoring_notes). Off by default.
    pub events_ignore_note: bool,
    /// The metrics registry.
    pub metrics: Metrics,
    /// The wall clock for timestamps in objects.
    pub clock: Arc<dyn Clock>,
    /// The seed of all randomness; random if `None`.
    pub seed: Option<u64>,
}

impl ManagerOptions {
    /// Options of a manager without servers and without leader election.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            cache: CacheOptions::default(),
            metrics_bind_address: BindAddress::OFF,
            metrics_secure: false,
            metrics_cert_path: None,
            metrics_cert_name: "tls.crt".to_owned(),
            metrics_cert_key: "tls.key".to_owned(),
            health_probe_bind_address: BindAddress::OFF,
            pprof_bind_address: BindAddress::OFF,
            debug_page_bind_address: BindAddress::OFF,
            webhooks: WebhookOptions::default(),
            controllers: ControllerOptions::default(),
            leader_election: None,
            graceful_shutdown_timeout: Some(Duration::from_secs(30)),
            journal: None,
            journal_token: None,
            events_ignore_note: false,
            metrics: Metrics::new(),
            clock: Arc::new(SystemClock),
            seed: None,
        }
    }

    /// Watches these namespaces only.
    #[must_use]
    pub fn namespaces<N: Into<String>>(mut self, namespaces: impl IntoIterator<Item = N>) -> Self {
        self.cache.namespaces = namespaces.into_iter().map(Into::into).collect();
        self
    }
}
