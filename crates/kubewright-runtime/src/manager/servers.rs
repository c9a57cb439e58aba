//! The servers of a manager: health probes, metrics, profiles and webhooks.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;

use tracing::info;

use super::group::Groups;
use super::{Inner, Manager, ManagerError};
use crate::certs::{CertificateMetrics, Certificates};
use crate::health;
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

    /// Binds the addresses and starts the servers.
    pub(super) async fn serve(&self, groups: &mut Groups) -> Result<(), ManagerError> {
        let Inner { options, healthz, readyz, addresses, .. } = &*self.inner;
        let health = Server::bind(&options.health_probe_bind_address, "--health-probe-bind-address").await?;
        let metrics = Server::bind(&options.metrics_bind_address, "--metrics-bind-address").await?;
        let pprof = Server::bind(&options.pprof_bind_address, "--pprof-bind-address").await?;
        let webhook = self.bind_webhooks().await?;
        let listening = Addresses {
            health_probe: health.as_ref().map(Server::address),
            metrics: metrics.as_ref().map(Server::address),
            pprof: pprof.as_ref().map(Server::address),
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
            let cache = self.inner.cache.clone();
            let heap = self.inner.heap_profiles.get().cloned();
            let handler = profiling::handler(move || vec![("manager".to_owned(), cache.clone())], heap);
            let stop = servers.stop.clone();
            servers.spawn("profiles", async move {
                server.run(handler, stop.cancelled_owned()).await;
                Ok(())
            });
        }
        let Some(mut server) = metrics else { return Ok(()) };
        info!(address = %server.address(), secure = options.metrics_secure, "Starting metrics server");
        let mut guard = None;
        if options.metrics_secure {
            let certificates = match &options.metrics_cert_path {
                Some(folder) => Certificates::from_files(
                    folder.join(&options.metrics_cert_name),
                    folder.join(&options.metrics_cert_key),
                )?,
                None => Certificates::self_signed(&["localhost"], &*options.clock)?,
            };
            server = server.with_tls(certificates.with_metrics(reads));
            guard = Some(Guard::new(self.inner.kube.clone()));
        }
        let (handler, stop) = (options.metrics.handler(guard), servers.stop.clone());
        servers.spawn("metrics", async move {
            server.run(handler, stop.cancelled_owned()).await;
            Ok(())
        });
        Ok(())
    }
}
