//! Starts the operator on a simulated cluster with a paused clock.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use anyhow::Result;
use collector::registry;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kubewright::prelude::*;
use kubewright::{Client, Key, ListOptions};
use kubewright_envtest::{Environment, Mode, Running};

/// Long enough for every rollout. The clock is paused, so it takes no real time, and everything is idle afterwards.
const SETTLED: Duration = Duration::from_mins(5);

/// A Deployment whose Pods have a number of containers.
fn web(containers: usize) -> String {
    let mut text = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: 'web:1'}
"
    .to_owned();
    for number in 2..=containers {
        let _ = writeln!(text, "      - {{name: web-{number}, image: 'web:1'}}");
    }
    text
}

/// The running operator, and a Deployment `web` with three Pods.
pub(crate) struct Operator {
    running: Running,
    pub(crate) namespace: String,
    pub(crate) env: Environment,
}

impl Operator {
    /// Starts the operator without a Deployment. The seed makes every run the same.
    pub(crate) async fn start() -> Result<Self> {
        let env = Environment::builder().mode(Mode::Embedded).seed(1).with_cluster().start().await?;
        let namespace = env.namespace().await?;
        let manager = env.manager("collector")?;
        registry::register(&manager)?;
        let mut running = env.run(manager);
        running.ready().await?;
        let operator = Self { running, namespace, env };
        operator.settle().await;
        Ok(operator)
    }

    pub(crate) async fn create(&self) -> Result<()> {
        self.create_with(1).await
    }

    pub(crate) async fn create_with(&self, containers: usize) -> Result<()> {
        self.env.apply_yaml(&self.namespace, &web(containers)).await?;
        self.settle().await;
        Ok(())
    }

    pub(crate) fn client(&self) -> &Client {
        self.env.runtime_client()
    }

    /// Waits until the operator and the cluster are idle.
    pub(crate) async fn settle(&self) {
        tokio::time::sleep(SETTLED).await;
    }

    /// Changes the Deployment, and waits until the operator and the cluster are idle.
    pub(crate) async fn change(&self, change: impl Fn(&mut Deployment)) -> Result<()> {
        self.client().modify(&Key::namespaced(&self.namespace, "web"), change).await?;
        self.settle().await;
        Ok(())
    }

    pub(crate) async fn scale(&self, replicas: i32) -> Result<()> {
        self.change(|web| web.spec.get_or_insert_default().replicas = Some(replicas)).await
    }

    pub(crate) async fn set_strategy(&self, strategy: &str) -> Result<()> {
        self.change(|web| {
            let current = web.spec.get_or_insert_default().strategy.get_or_insert_default();
            current.type_ = Some(strategy.to_owned());
            current.rolling_update = None;
        })
        .await
    }

    pub(crate) async fn pods(&self) -> Result<Vec<std::sync::Arc<Pod>>> {
        Ok(self.client().list(&ListOptions::namespace(&self.namespace)).await?)
    }

    /// Deletes Pods at the same time.
    pub(crate) async fn delete_pods(&self, count: usize) -> Result<()> {
        for pod in self.pods().await?.iter().take(count) {
            self.client().delete(&**pod).await?;
        }
        self.settle().await;
        Ok(())
    }

    /// Asserts that the ConfigMap has the IPs of all Pods.
    pub(crate) async fn assert_collected(&self, count: usize) -> Result<()> {
        let pods = self.pods().await?;
        let expected: BTreeMap<String, String> = pods
            .iter()
            .map(|pod| (pod.name_any(), pod.status.clone().and_then(|it| it.pod_ip).unwrap_or_default()))
            .collect();
        assert_eq!(expected.len(), count);
        assert!(expected.values().all(|ip| !ip.is_empty()), "{expected:?}");
        let map = self.client().get::<ConfigMap>(&Key::namespaced(&self.namespace, "web-pod-ips")).await?;
        assert_eq!(map.data.clone().unwrap_or_default(), expected);
        Ok(())
    }

    /// The value of a counter; 0 if it has not been incremented.
    pub(crate) fn count(&self, name: &str, labels: &[(&str, &str)]) -> u32 {
        let value = self.running.metrics().value(name, labels).unwrap_or(0.0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a counter")]
        let count = value as u32;
        count
    }

    pub(crate) async fn stop(self) -> Result<()> {
        Ok(self.running.stop().await?)
    }
}

#[tokio::test(start_paused = true)]
async fn the_operator_starts_and_stops() -> Result<()> {
    Operator::start().await?.stop().await
}
