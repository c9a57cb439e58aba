//! What a manager is started with. The operator's entry point fills this from its flags.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::cache::CacheOptions;
use crate::controller::ControllerOptions;
use crate::metrics::Metrics;
use crate::serve::BindAddress;
use crate::webhook::WebhookOptions;
use crate::{Clock, ElectionOptions, SystemClock};

/// What a manager is started with.
///
/// ```
/// use kubewright_runtime::{ElectionOptions, ManagerOptions};
///
/// let options = ManagerOptions {
///     health_probe_bind_address: ":8081".parse()?,
///     leader_election: Some(ElectionOptions::new("guestbook.example.com")),
///     ..ManagerOptions::new("guestbook")
/// };
/// # Ok::<(), kubewright_runtime::serve::AddressError>(())
/// ```
#[derive(Clone)]
pub struct ManagerOptions {
    /// The name of the operator: the owner of the fields that it writes, and who reports its events.
    pub name: String,
    /// What the cache keeps; `cache.namespaces` are the namespaces that the operator watches.
    pub cache: CacheOptions,
    /// Where `/metrics` is served; nowhere if off.
    pub metrics_bind_address: BindAddress,
    /// Serve metrics over TLS, to those only whom the API server knows and allows.
    pub metrics_secure: bool,
    /// A folder with certificate and key for the metrics; made up if none is given.
    pub metrics_cert_path: Option<PathBuf>,
    /// The file of the certificate in that folder.
    pub metrics_cert_name: String,
    /// The file of its key.
    pub metrics_cert_key: String,
    /// Where `/healthz` and `/readyz` are served; nowhere if off.
    pub health_probe_bind_address: BindAddress,
    /// Where profiles are served, without authentication; nowhere if off. See [`profiling`](crate::profiling).
    pub pprof_bind_address: BindAddress,
    /// How webhooks are served. By default they are registered and not served.
    pub webhooks: WebhookOptions,
    /// The defaults of all controllers.
    pub controllers: ControllerOptions,
    /// Have one of several replicas lead; every replica does everything if none.
    pub leader_election: Option<ElectionOptions>,
    /// How long what runs may take to end. For ever if none.
    pub graceful_shutdown_timeout: Option<Duration>,
    /// Who is told of every reconcile as it happens: the address of a program that reads a [journal](crate::journal).
    /// Nobody by default.
    pub journal: Option<SocketAddr>,
    /// Whether events that differ only in their notes are one Event; see
    /// [`Recorder::ignoring_notes`](crate::events::Recorder::ignoring_notes). False by default.
    pub events_ignore_note: bool,
    /// Where things are counted.
    pub metrics: Metrics,
    /// Tells the time, for what is written into objects.
    pub clock: Arc<dyn Clock>,
    /// Seed of everything that is left to chance; by lot if none.
    pub seed: Option<u64>,
}

impl ManagerOptions {
    /// A manager that serves nothing and leads always.
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
            webhooks: WebhookOptions::default(),
            controllers: ControllerOptions::default(),
            leader_election: None,
            graceful_shutdown_timeout: Some(Duration::from_secs(30)),
            journal: None,
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
