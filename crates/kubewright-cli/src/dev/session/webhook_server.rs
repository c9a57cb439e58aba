//! The operator's webhooks in the cluster, if the cluster can reach this machine.

use anyhow::{Result, anyhow};
use kubewright_manifests::inventory::Inventory;

use crate::dev::cluster::Cluster;
use crate::dev::operator::Launch;
use crate::dev::report::{Report, count};
use crate::dev::webhooks::{self, Host, Webhooks};
use crate::error::Hint as _;
use crate::project::Manifests;

pub(super) struct WebhookServer {
    /// `None` if the cluster cannot reach this machine.
    webhooks: Option<Webhooks>,
    /// Whether the installation was reported.
    is_reported: bool,
}

impl WebhookServer {
    /// Creates the certificate, and deletes the webhooks that a crashed run left behind: nothing serves them.
    pub(super) async fn start(
        cluster: &Cluster,
        project: &str,
        host: Option<&str>,
        report: &Report,
    ) -> Result<Self> {
        match webhooks::clean_up(cluster.client(), project).await {
            Ok(0) => {}
            Ok(left) => {
                let what = count(left, "object");
                report.step("webhooks", &format!("{what} of an earlier run deleted or restored"))?;
            }
            // The user may lack the permission, and the operator may have no webhooks.
            Err(error) => {
                let message = format!("cannot list webhook configurations of an earlier run: {error:#}");
                report.failed("webhooks", &message)?;
            }
        }
        let host = if cluster.is_existing() {
            Host::of_existing(host, cluster.local())
        } else {
            Some(Host::Loopback)
        };
        let webhooks = host.map(|host| Webhooks::new(project, &host)).transpose()?;
        Ok(Self { webhooks, is_reported: false })
    }

    /// Configures the operator's webhook server.
    pub(super) fn configure(&self, launch: &mut Launch) {
        match &self.webhooks {
            Some(webhooks) => launch.variables.extend(webhooks.variables()),
            None => launch.arguments.push("--webhook-bind-address=0".to_owned()),
        }
    }

    /// Points the conversion webhooks of the CRDs at this machine.
    pub(super) async fn convert(&mut self, cluster: &Cluster, manifests: &mut Manifests) -> Result<()> {
        match &mut self.webhooks {
            Some(webhooks) => webhooks.convert_here(cluster.client(), &mut manifests.crds).await,
            // Without the conversion, objects of the other versions could be neither read nor written.
            None if !manifests.inventory.conversions.is_empty() => Err(anyhow!(
                "the operator has a conversion webhook, and the address at which the cluster reaches this machine is unknown"
            ))
            .hint("set --webhook-host to a name or address of this machine that the cluster can connect to"),
            None => Ok(()),
        }
    }

    /// Configures the API server to call the operator's webhooks. The operator already serves them.
    pub(super) async fn install(
        &mut self,
        inventory: &Inventory,
        cluster: &Cluster,
        report: &Report,
    ) -> Result<()> {
        let is_first = !std::mem::replace(&mut self.is_reported, true);
        let Some(webhooks) = &mut self.webhooks else {
            if is_first && inventory.serves_webhooks() {
                let message = "not installed: cannot detect how this cluster reaches your machine; \
                               set --webhook-host to a reachable name or address";
                report.failed("webhooks", message)?;
            }
            return Ok(());
        };
        let installed = webhooks.apply(cluster.client(), inventory).await?;
        if installed > 0
            && let Some(unreachable) = webhooks.check_reachable(cluster.client()).await?
        {
            // Without the conversion, objects of the other versions could be neither read nor written.
            if !inventory.conversions.is_empty() {
                return Err(anyhow!("webhooks: {unreachable}"));
            }
            return report.failed("webhooks", &unreachable.to_string());
        }
        if is_first && installed > 0 {
            report.step("webhooks", &format!("{} served locally", count(installed, "webhook")))?;
        }
        Ok(())
    }

    /// Deletes the configurations and restores the conversion of CRDs.
    pub(super) async fn remove(&mut self, cluster: &Cluster) -> Result<()> {
        match &mut self.webhooks {
            Some(webhooks) => webhooks.remove(cluster.client()).await,
            None => Ok(()),
        }
    }
}
