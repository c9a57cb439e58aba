//! Recipe: custom metrics.

use kubewright::k8s_openapi::api::core::v1::Pod;
use kubewright::metrics::Metrics;
use kubewright::prelude::*;
use kubewright::prometheus_client::metrics::counter::Counter;
use kubewright::prometheus_client::metrics::{family::Family, gauge::Gauge};
use kubewright::{Context, Key, Result};

type Labels = [(&'static str, String); 2];

/// Reports how often the containers of a Pod restarted.
pub struct RestartReconciler {
    restarts: Family<Labels, Gauge>,
    reconciles: Counter,
}

impl RestartReconciler {
    /// Creates a reconciler and registers its metrics.
    pub fn new(metrics: &Metrics) -> Self {
        let this = Self { restarts: Family::default(), reconciles: Counter::default() };
        metrics.with_registry(|registry| {
            registry.register("pod_restarts", "Restarts of a Pod's containers", this.restarts.clone());
            registry.register("pod_reconciles", "Reconciled Pods", this.reconciles.clone());
        });
        this
    }
}

fn labels(key: &Key) -> Labels {
    [("namespace", key.namespace().unwrap_or_default().to_owned()), ("pod", key.name().to_owned())]
}

impl Reconciler for RestartReconciler {
    type Object = Pod;

    async fn reconcile(&self, pod: &Pod, cx: &Context) -> Result<Outcome> {
        let statuses = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
        let restarts: i32 = statuses.map(|status| status.restart_count).sum();
        self.restarts.get_or_create(&labels(cx.key())).set(restarts.into());
        self.reconciles.inc();
        Ok(Outcome::done())
    }

    async fn deleted(&self, key: &Key, _: &Context) -> Result<Outcome> {
        // Otherwise a deleted Pod is exported until the next restart.
        self.restarts.remove(&labels(key));
        Ok(Outcome::done())
    }
}

pub fn register(manager: &Manager) -> Result<()> {
    manager.controller(RestartReconciler::new(manager.metrics())).register()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use anyhow::ensure;
    use kubewright_envtest::{Environment, eventually};

    use super::*;

    #[tokio::test]
    async fn the_gauge_is_exported_and_removed_with_the_pod() -> Result<()> {
        let env = Environment::start().await?;
        let client = env.runtime_client();
        let manager = env.manager("restarts")?;
        register(&manager)?;
        let running = env.run(manager);
        let pod = "{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: web, image: nginx}]}}";
        env.apply_yaml("default", pod).await?;
        let value = || running.metrics().value("pod_restarts", &[("namespace", "default"), ("pod", "web")]);
        eventually(Duration::from_secs(30), async || {
            ensure!(value() == Some(0.0), "{:?}", value());
            Ok(())
        })
        .await?;
        assert!(running.metrics().value("pod_reconciles_total", &[]) >= Some(1.0));

        let key = Key::namespaced("default", "web");
        client
            .delete_with(&*client.get::<Pod>(&key).await?, &kubewright::Delete::new().grace_period(0))
            .await?;
        eventually(Duration::from_secs(30), async || {
            ensure!(value().is_none(), "{:?}", value());
            Ok(())
        })
        .await?;
        Ok(running.stop().await?)
    }
}
