//! The servers of a manager: health probes, metrics, profiles and webhooks.

use tracing::info;

use super::group::Groups;
use super::{Addresses, Inner, Manager, ManagerError};
use crate::certs::{CertificateMetrics, Certificates};
use crate::health;
use crate::metrics::Guard;
use crate::profiling;
use crate::serve::Server;

impl Manager {
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
            let handler = profiling::handler(move || vec![("manager".to_owned(), cache.clone())]);
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
