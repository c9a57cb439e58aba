//! The server as a value: how it is created, opened from disk and forked. [`stages`] wires its stages.

mod bootstrap;
mod handler;
mod limits;
mod options;
mod stages;

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use http_body_util::Full;

use crate::authn::User;
use crate::certs::pki::Pki;
use crate::certs::{Authority, CertificateError};
use crate::registry::resource::Registry;
use crate::registry::store::attributes;
use crate::storage::log::{self, OpenError, Recovered};
use crate::storage::{Engine as _, Store};
use crate::webhook_client::WebhookAddress;
pub(crate) use handler::{no_page, no_resource};
pub(crate) use limits::RequestLimits;
pub use options::{Controllers, Options};
use stages::{Parts, Stages};

/// A Kubernetes API server. Cheap to clone; clones share the same server.
///
/// It is a [`tower_service::Service`], so a client that accepts one needs no socket. Servers share no state;
/// [`ApiServer::fork`] copies one.
#[derive(Clone)]
pub struct ApiServer {
    pub(crate) stages: Arc<Stages>,
}

impl ApiServer {
    /// A new server with the bootstrap objects.
    pub fn new(options: Options) -> Self {
        let server = Self::on(Parts::new(Store::new(options.limits), options, None));
        server.bootstrap();
        server
    }

    /// A server that stores its objects in a directory, and recovers existing ones from it.
    pub fn open(dir: &Path, options: Options) -> Result<(Self, Recovered), OpenError> {
        let opened = log::open(dir, options.limits, |resource, object| {
            attributes(Registry::default().stored(resource).map(|resource| resource.stored()), object)
        })?;
        let fresh = opened.engine.revision() == 0;
        let (pki, contents) =
            Pki::open(dir).map_err(|source| OpenError::Io { path: dir.join("pki"), source })?;
        let mut options = options;
        options.tokens.signing_key.get_or_insert(contents.signing_key);
        let store = Store::with(opened.engine, Some(opened.log));
        let server = Self::on(Parts::new(store, options, Some(pki)));
        server.stages.client_ca.set(contents.authority);
        for issuer in contents.issuers.into_iter().rev() {
            server.stages.authn.tokens.lead_with(&issuer);
        }
        if fresh {
            server.bootstrap();
        }
        server.stages.steps.resume();
        Ok((server, opened.recovered))
    }

    fn on(parts: Parts) -> Self {
        Self { stages: Arc::new(Stages::wire(parts)) }
    }

    /// A server whose admission has only these plugins.
    #[cfg(test)]
    pub(crate) fn with_admission_chain(chain: crate::admission::Chain) -> Self {
        let options = Options::default();
        let mut parts = Parts::new(Store::new(options.limits), options, None);
        parts.chain = Arc::new(chain);
        let server = Self::on(parts);
        server.bootstrap();
        server
    }

    /// The controllers that the server runs.
    pub fn controllers(&self) -> Controllers {
        self.stages.objects.controllers
    }

    /// An independent copy with the same objects. Objects are shared, not copied.
    #[must_use]
    pub fn fork(&self) -> Self {
        let fork = Self::on(Parts::fork(&self.stages));
        // A CRD may have been written between the forks of the storage and of the registry.
        fork.stages.steps.crds.publish();
        fork
    }

    /// The revision of the last change.
    pub fn revision(&self) -> u64 {
        self.stages.store.revision()
    }

    /// The CA of client certificates, and of the serving certificate if none is given.
    pub fn authority(&self) -> Result<Arc<Authority>, CertificateError> {
        self.stages.client_ca.get()
    }

    /// Makes the server's URL the issuer of service account tokens, unless the options set one.
    pub(crate) fn listen_at(&self, url: &str) {
        let issuers = self.stages.authn.tokens.listen_at(url);
        if let Some(pki) = &self.stages.pki
            && let Err(error) = pki.keep_issuers(&issuers)
        {
            tracing::warn!(%error, "failed to store token issuers; tokens may be rejected after a restart");
        }
    }

    /// Adds a static bearer token for `user`.
    pub fn add_token(&self, token: impl Into<String>, user: User) {
        self.stages.authn.tokens.add(token.into(), user);
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
        self.stages.webhooks.handlers.add(address, service);
    }

    /// Flushes the log and releases the data directory. Later writes are not stored.
    pub fn close(&self) -> std::io::Result<()> {
        self.stages.store.close()
    }
}
