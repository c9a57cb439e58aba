//! The servers of a manager: health probes, metrics, profiles, the debug page and webhooks.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::mpsc;
use tracing::info;

use super::group::Groups;
use super::{Inner, Manager, ManagerError};
use crate::certs::{CertificateMetrics, Certificates};
use crate::debug_page::{Access, DebugPage, Observed};
use crate::health;
use crate::journal::{Journal, Listener, Record, Writer};
use crate::metrics::Guard;
use crate::profiling;
use crate::serve::Server;

/// The addresses that a manager listens on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Addresses {
    /// The address of `/healthz` and `/readyz`.
    pub health_probe: Option<SocketAddr>,
    /// The address of `/metrics`.
    pub metrics: Option<SocketAddr>,
    /// The address of `/debug/pprof/`.
    pub pprof: Option<SocketAddr>,
    /// The address of the debug page.
    pub debug_page: Option<SocketAddr>,
    /// The address of the webhook server.
    pub webhook: Option<SocketAddr>,
}

impl Manager {
    /// Serves heap profiles at `/debug/pprof/heap` of `--pprof-bind-address`. Call it before the manager runs; the first
    /// call counts.
    ///
    /// `profile` returns a profile in pprof's format, compressed with gzip or not. It comes from the program's allocator,
    /// which must sample allocations: the system's does not. `profile` may block.
    ///
    /// ```
    /// # fn dump() -> Result<Vec<u8>, std::io::Error> { Ok(Vec::new()) }
    /// # fn register(manager: &kubewright_runtime::Manager) {
    /// manager.heap_profiles(|| dump());
    /// # }
    /// ```
    pub fn heap_profiles<E: Into<Box<dyn Error + Send + Sync>>>(
        &self,
        profile: impl Fn() -> Result<Vec<u8>, E> + Send + Sync + 'static,
    ) {
        // The first call counts.
        let _ = self.inner.heap_profiles.set(Arc::new(move || profile().map_err(Into::into)));
    }

    /// Sets the debug page that `--debug-page-bind-address` serves. Call it before the manager runs; the first call counts.
    #[doc(hidden)]
    pub fn set_debug_page(&self, page: Arc<dyn DebugPage>) {
        // The first call counts.
        let _ = self.inner.debug_page.set(page);
    }

    /// Binds the addresses and starts the servers.
    pub(super) async fn serve(&self, groups: &mut Groups) -> Result<(), ManagerError> {
        let Inner { options, healthz, readyz, addresses, .. } = &*self.inner;
        let health = Server::bind(&options.health_probe_bind_address, "--health-probe-bind-address").await?;
        let metrics = Server::bind(&options.metrics_bind_address, "--metrics-bind-address").await?;
        let pprof = Server::bind(&options.pprof_bind_address, "--pprof-bind-address").await?;
        let debug_page = self.bind_debug_page().await?;
        let webhook = self.bind_webhooks().await?;
        let listening = Addresses {
            health_probe: health.as_ref().map(Server::address),
            metrics: metrics.as_ref().map(Server::address),
            pprof: pprof.as_ref().map(Server::address),
            debug_page: debug_page.as_ref().map(Server::address),
            webhook: webhook.as_ref().map(Server::address),
        };
        addresses.send_modify(|addresses| *addresses = Some(listening));
        let reads = options.metrics.with_registry(CertificateMetrics::register);
        if !self.inner.webhooks.is_empty() {
            // Also if they are not served here: a test environment calls them in the process.
            options.metrics.with_registry(|registry| self.inner.webhooks.register_metrics(registry));
        }
        if let Some(server) = webhook {
            self.serve_webhooks(server, &reads, groups)?;
        }
        let servers = &mut groups.servers;
        if let Some(server) = health {
            info!(address = %server.address(), "Starting health probe server");
            let (handler, stop) = (health::handler(healthz.clone(), readyz.clone()), servers.stop.clone());
            servers.spawn("health probes", async move {
                server.run(handler, stop.cancelled_owned()).await;
                Ok(())
            });
        }
        if let Some(server) = pprof {
            info!(address = %server.address(), "Starting pprof server");
            let caches = self.inner.caches.clone();
            let heap = self.inner.heap_profiles.get().cloned();
            let handler = profiling::handler(caches, heap);
            let stop = servers.stop.clone();
            servers.spawn("profiles", async move {
                server.run(handler, stop.cancelled_owned()).await;
                Ok(())
            });
        }
        // The debug page and the metrics share the results of reviews.
        let guard = options.metrics_secure.then(|| Guard::new(self.inner.kube.clone()));
        if let Some((page, server)) = self.inner.debug_page.get().zip(debug_page) {
            info!(address = %server.address(), secure = options.metrics_secure, "Starting debug page server");
            let server = self.secured(server, &reads)?;
            let access = guard.clone().map_or(Access::Local, Access::Authorized);
            let stop = servers.stop.clone();
            let handler = page.handler(access, stop.clone());
            servers.spawn("debug page", async move {
                server.run(handler, stop.cancelled_owned()).await;
                Ok(())
            });
        }
        let Some(server) = metrics else { return Ok(()) };
        info!(address = %server.address(), secure = options.metrics_secure, "Starting metrics server");
        let server = self.secured(server, &reads)?;
        let (handler, stop) = (options.metrics.handler(guard), servers.stop.clone());
        servers.spawn("metrics", async move {
            server.run(handler, stop.cancelled_owned()).await;
            Ok(())
        });
        Ok(())
    }

    /// Binds the debug page. Without authentication it is served on loopback addresses only.
    async fn bind_debug_page(&self) -> Result<Option<Server>, ManagerError> {
        let Inner { options, debug_page, .. } = &*self.inner;
        if options.debug_page_bind_address.is_off() {
            return Ok(None);
        }
        if debug_page.get().is_none() {
            return Err(ManagerError::NoDebugPage);
        }
        let server = Server::bind(&options.debug_page_bind_address, "--debug-page-bind-address").await?;
        match &server {
            Some(server) if !options.metrics_secure && !server.address().ip().is_loopback() => {
                Err(ManagerError::OpenDebugPage(server.address()))
            }
            _ => Ok(server),
        }
    }

    /// Adds TLS with the certificate of the metrics server, if metrics are secured.
    fn secured(&self, server: Server, reads: &CertificateMetrics) -> Result<Server, ManagerError> {
        let options = &self.inner.options;
        if !options.metrics_secure {
            return Ok(server);
        }
        let certificates = match &options.metrics_cert_path {
            Some(folder) => Certificates::from_files(
                folder.join(&options.metrics_cert_name),
                folder.join(&options.metrics_cert_key),
            )?,
            None => Certificates::self_signed(&["localhost"], &*options.clock)?,
        };
        Ok(server.with_tls(certificates.with_metrics(reads.clone())))
    }

    /// The journal, if something receives it, and its receivers: the writer, and the records for the debug page.
    pub(super) fn journal(&self) -> (Option<Journal>, Option<Writer>, Option<mpsc::Receiver<Record>>) {
        let options = &self.inner.options;
        let listener =
            options.journal.map(|address| Listener { address, token: options.journal_token.clone() });
        let shows_page = !options.debug_page_bind_address.is_off() && self.inner.debug_page.get().is_some();
        let (page, records) = shows_page.then(Journal::for_page).unzip();
        if listener.is_none() && page.is_none() {
            return (None, None, None);
        }
        let (journal, writer) = Journal::new(listener, page, options.clock.clone());
        self.record_webhooks(&journal);
        (Some(journal), writer, records)
    }

    /// Lets the debug page follow the manager until it stops.
    pub(super) fn follow_for_page(
        &self,
        records: mpsc::Receiver<Record>,
        controllers: Vec<String>,
        groups: &mut Groups,
    ) {
        let Inner { options, cache, debug_page, .. } = &*self.inner;
        let Some(page) = debug_page.get() else { return };
        let following = page.follow(Observed {
            operator: options.name.clone(),
            controllers,
            records,
            cache: cache.clone(),
        });
        let stop = groups.servers.stop.clone();
        groups.servers.spawn("debug page state", async move {
            stop.run_until_cancelled(following).await;
            Ok(())
        });
    }
}
