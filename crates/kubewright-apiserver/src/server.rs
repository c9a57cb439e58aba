//! The server as a value: its parts, how they are created, opened from disk and forked.

mod bootstrap;
mod handler;
mod limits;
mod options;

use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, RwLock};

use bytes::Bytes;
use http::Response;
use http_body_util::Full;

use crate::admission::{Chain, Webhooks};
use crate::after_commit::crd_names::Groups;
use crate::audit::Audit;
use crate::authn::tokens::Tokens;
use crate::authn::{Authn, User};
use crate::authz::Authz;
use crate::certs::pki::Pki;
use crate::certs::{Authority, CertificateError};
use crate::clock::Clock;
use crate::endpoints::openapi::{OpenApi, Published};
use crate::endpoints::version::KubernetesVersion;
use crate::ids::Ids;
use crate::registry::resource::Registry;
use crate::registry::service_ips::InFlight;
use crate::registry::write::attributes;
use crate::storage::compaction::Compaction;
use crate::storage::log::{self, OpenError, Recovered};
use crate::storage::{Engine as _, Limits, Store};
use crate::webhook_client::WebhookAddress;
pub(crate) use handler::{no_page, no_resource};
pub(crate) use limits::RequestLimits;
pub use options::{Controllers, Options};

/// A Kubernetes API server. Cheap to clone; clones share the same server.
///
/// It is a [`tower_service::Service`], so a client that accepts one needs no socket. Servers share no state;
/// [`ApiServer::fork`] copies one.
#[derive(Clone)]
pub struct ApiServer {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) store: Arc<Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Ids,
    pub(crate) authn: Authn,
    pub(crate) authz: Arc<Authz>,
    pub(crate) controllers: Controllers,
    pub(crate) admission: Arc<Chain>,
    pub(crate) webhooks: Webhooks,
    /// The CA of client certificates, created on first use.
    pub(crate) authority: Arc<OnceLock<Arc<Authority>>>,
    /// Where keys and certificates are stored, with a data directory.
    pki: Option<Pki>,
    pub(crate) registry: RwLock<Arc<Registry>>,
    /// Held while CRDs are processed, so that two cannot get the same name.
    pub(crate) definitions: Mutex<Groups>,
    pub(crate) in_flight: InFlight,
    pub(crate) openapi: Arc<OpenApi>,
    pub(crate) published: Published,
    pub(crate) version: KubernetesVersion,
    audit: Option<Arc<dyn Audit>>,
    pub(crate) request_limits: RequestLimits,
    limits: Limits,
    pub(crate) compaction: Compaction,
}

impl ApiServer {
    /// A new server with the bootstrap objects.
    pub fn new(options: Options) -> Self {
        let server = Self::on(Store::new(options.limits), options);
        server.inner.bootstrap();
        server
    }

    /// A server that stores its objects in a directory, and recovers existing ones from it.
    pub fn open(dir: &Path, options: Options) -> Result<(Self, Recovered), OpenError> {
        let opened = log::open(dir, options.limits, |resource, object| {
            attributes(Registry::default().stored(resource).map(|served| served.stored()), object)
        })?;
        let fresh = opened.engine.revision() == 0;
        let (pki, contents) =
            Pki::open(dir).map_err(|source| OpenError::Io { path: dir.join("pki"), source })?;
        let mut options = options;
        options.tokens.signing_key.get_or_insert(contents.signing_key);
        let server = Self::on_with(Store::with(opened.engine, Some(opened.log)), options, Some(pki));
        server.inner.authority.get_or_init(|| Arc::new(contents.authority));
        for issuer in contents.issuers.into_iter().rev() {
            server.inner.authn.tokens.lead_with(&issuer);
        }
        if fresh {
            server.inner.bootstrap();
        }
        server.inner.resume_definitions();
        // A previous server without controllers may not have updated aggregated roles.
        if server.inner.controllers == Controllers::Core {
            server.inner.aggregate_roles();
        }
        server.inner.resume_steps();
        Ok((server, opened.recovered))
    }

    fn on(store: Store, options: Options) -> Self {
        Self::on_with(store, options, None)
    }

    fn on_with(store: Store, options: Options, pki: Option<Pki>) -> Self {
        let ids = Ids::new(options.seed);
        let store = Arc::new(store);
        let authz = Arc::new(Authz::new(options.authorization, store.clone()));
        let compaction = Compaction::new(options.compaction_interval, options.clock.now_micros());
        Self {
            inner: Arc::new(Inner {
                authn: Authn::new(
                    Tokens::new(options.tokens),
                    authz.clone(),
                    store.clone(),
                    options.clock.clone(),
                ),
                authz,
                store,
                clock: options.clock,
                ids,
                controllers: options.controllers,
                admission: Arc::new(Chain::new(&options.admission)),
                webhooks: Webhooks::default(),
                authority: Arc::default(),
                pki,
                registry: RwLock::default(),
                definitions: Mutex::default(),
                in_flight: InFlight::default(),
                openapi: Arc::new(OpenApi::new(options.descriptions, options.version)),
                published: Published::default(),
                version: options.version,
                audit: options.audit,
                request_limits: RequestLimits::default(),
                limits: options.limits,
                compaction,
            }),
        }
    }

    /// The controllers that the server runs.
    pub fn controllers(&self) -> Controllers {
        self.inner.controllers
    }

    /// An independent copy with the same objects. Objects are shared, not copied.
    #[must_use]
    pub fn fork(&self) -> Self {
        let inner = &self.inner;
        let authz = inner.authz.fork();
        let store = Arc::new(inner.store.fork());
        let authz = Arc::new(authz(store.clone()));
        let fork = Self {
            inner: Arc::new(Inner {
                authn: Authn::new(
                    inner.authn.tokens.fork(),
                    authz.clone(),
                    store.clone(),
                    inner.clock.clone(),
                ),
                authz,
                store,
                clock: inner.clock.clone(),
                ids: inner.ids.fork(),
                controllers: inner.controllers,
                admission: inner.admission.clone(),
                webhooks: inner.webhooks.fork(),
                authority: inner.authority.clone(),
                pki: None,
                registry: RwLock::new(Arc::new(inner.registry().fork())),
                definitions: Mutex::default(),
                in_flight: InFlight::default(),
                openapi: inner.openapi.clone(),
                published: Published::default(),
                version: inner.version,
                audit: inner.audit.clone(),
                request_limits: RequestLimits::default(),
                limits: inner.limits,
                compaction: inner.compaction.fork(),
            }),
        };
        // A CRD may have been written between the two forks.
        fork.inner.publish();
        fork
    }

    /// The revision of the last change.
    pub fn revision(&self) -> u64 {
        self.inner.store.revision()
    }

    /// The CA of client certificates, and of the serving certificate if none is given.
    pub fn authority(&self) -> Result<Arc<Authority>, CertificateError> {
        self.inner.authority()
    }

    /// Makes the server's URL the issuer of service account tokens, unless the options set one.
    pub(crate) fn listen_at(&self, url: &str) {
        let issuers = self.inner.authn.tokens.listen_at(url);
        if let Some(pki) = &self.inner.pki
            && let Err(error) = pki.keep_issuers(&issuers)
        {
            tracing::warn!(%error, "failed to store token issuers; tokens may be rejected after a restart");
        }
    }

    /// Adds a static bearer token for `user`.
    pub fn add_token(&self, token: impl Into<String>, user: User) {
        self.inner.authn.tokens.add(token.into(), user);
    }

    /// Calls `service` in-process for all admission and conversion webhooks whose `clientConfig` has
    /// `address`. Forks inherit it.
    pub fn add_webhook_handler<S, B>(&self, address: WebhookAddress, service: S)
    where
        S: tower_service::Service<http::Request<Full<Bytes>>, Response = Response<B>>
            + Clone
            + Send
            + Sync
            + 'static,
        S::Future: Send,
        S::Error: std::fmt::Display,
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        self.inner.webhooks.handlers.add(address, service);
    }

    /// Flushes the log and releases the data directory. Later writes are not stored.
    pub fn close(&self) -> std::io::Result<()> {
        self.inner.store.close()
    }
}

impl Inner {
    pub(crate) fn authority(&self) -> Result<Arc<Authority>, CertificateError> {
        if let Some(authority) = self.authority.get() {
            return Ok(authority.clone());
        }
        let authority = Arc::new(Authority::new()?);
        Ok(self.authority.get_or_init(|| authority).clone())
    }
}
