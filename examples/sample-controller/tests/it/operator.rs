//! Starts the operator in a test, with and without a manager.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::events::v1::Event;
use kubewright::condition::find_condition;
use kubewright::{CacheOptions, Client, Key, ManagerOptions};
use kubewright_envtest::{Environment, Running, eventually};
use sample_controller::api::v1alpha1::{Bar, BarStatus};
use sample_controller::bar::READY;
use sample_controller::inventory::MemoryInventory;
use sample_controller::{by_hand, controllers, registry};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::role;

/// A real cluster may have to pull the image.
pub(crate) const LIMIT: Duration = Duration::from_mins(1);
const SAMPLE: &str = include_str!("../../config/samples/samplecontroller_v1alpha1_bar.yaml");

/// Which of the two controllers runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    Manager,
    ByHand,
}

/// A control plane with the running operator.
pub(crate) struct Operator {
    running: Option<Running>,
    by_hand: Option<(oneshot::Sender<()>, JoinHandle<Result<()>>)>,
    pub(crate) inventory: Arc<MemoryInventory>,
    pub(crate) namespace: String,
    pub(crate) env: Environment,
}

impl Operator {
    /// Starts the operator, with the permissions of its generated role.
    pub(crate) async fn start(version: Version) -> Result<Self> {
        let env = Environment::builder().crd::<Bar>().with_cluster().start().await?;
        let namespace = env.namespace().await?;
        let inventory = Arc::new(MemoryInventory::default());
        let mut operator = Self { running: None, by_hand: None, inventory, namespace, env };
        match version {
            Version::Manager => {
                let options = ManagerOptions::new("sample-controller").namespaces([&operator.namespace]);
                let manager = operator.env.manager_with(options)?;
                controllers::bar::register_with(&manager, operator.inventory.clone())?;
                operator.running = Some(operator.env.run(manager));
            }
            Version::ByHand => {
                let kube = operator.env.user(role::USER, role::generated()?).await?;
                let (stop, stopped) = oneshot::channel();
                let options =
                    CacheOptions { namespaces: vec![operator.namespace.clone()], ..CacheOptions::default() };
                let run = by_hand::run(kube, options, operator.inventory.clone(), 2, async {
                    let _ = stopped.await;
                });
                operator.by_hand = Some((stop, tokio::spawn(run)));
            }
        }
        Ok(operator)
    }

    /// Starts the operator and creates the sample.
    pub(crate) async fn with_sample(version: Version) -> Result<Self> {
        let operator = Self::start(version).await?;
        operator.create_sample().await?;
        Ok(operator)
    }

    pub(crate) async fn create_sample(&self) -> Result<()> {
        self.env.apply_yaml(&self.namespace, SAMPLE).await?;
        Ok(())
    }

    /// The number of reconciles.
    pub(crate) fn runs(&self) -> f64 {
        let labels = [("controller", "bar"), ("result", "success")];
        let metrics = self.running.as_ref().map(Running::metrics);
        metrics.and_then(|it| it.value("controller_runtime_reconcile_total", &labels)).unwrap_or(0.0)
    }

    pub(crate) fn key(&self, name: &str) -> Key {
        Key::namespaced(&self.namespace, name)
    }

    pub(crate) fn client(&self) -> &Client {
        self.env.runtime_client()
    }

    pub(crate) async fn change(&self, change: impl Fn(&mut Bar)) -> Result<()> {
        self.client().modify(&self.key("bar-sample"), change).await?;
        Ok(())
    }

    pub(crate) async fn status(&self) -> Result<BarStatus> {
        let bar = self.client().get::<Bar>(&self.key("bar-sample")).await?;
        Ok(bar.status.clone().unwrap_or_default())
    }

    /// Waits until the condition Ready has this reason.
    pub(crate) async fn becomes(&self, reason: &str) -> Result<BarStatus> {
        let status = eventually(LIMIT, async || {
            let status = self.status().await?;
            let ready = find_condition(&status.conditions, READY);
            ensure!(ready.is_some_and(|it| it.reason == reason), "{status:?}");
            Ok(status)
        });
        Ok(status.await?)
    }

    /// Waits until a Deployment exists, or no longer exists.
    pub(crate) async fn has_deployment(&self, name: &str, exists: bool) -> Result<()> {
        eventually(LIMIT, async || {
            let found = self.client().get_opt::<Deployment>(&self.key(name)).await?;
            ensure!(found.is_some() == exists, "Deployment {name}: {found:?}");
            Ok(())
        })
        .await?;
        Ok(())
    }

    /// Waits for an event about the sample, and returns its type and note.
    pub(crate) async fn event(&self, reason: &str) -> Result<(String, String)> {
        let event = eventually(LIMIT, async || {
            let events = self.env.events(&self.namespace).await?;
            let found = |event: &&Arc<Event>| event.reason.as_deref() == Some(reason);
            events.iter().find(found).cloned().with_context(|| format!("no event {reason}"))
        })
        .await?;
        Ok((event.type_.clone().unwrap_or_default(), event.note.clone().unwrap_or_default()))
    }

    pub(crate) async fn stop(self) -> Result<()> {
        if let Some(running) = self.running {
            running.stop().await?;
        }
        if let Some((stop, task)) = self.by_hand {
            let _ = stop.send(());
            task.await??;
        }
        Ok(())
    }
}

#[tokio::test]
async fn the_operator_starts_and_stops() -> Result<()> {
    let env = Environment::start().await?;
    let manager = env.manager("sample-controller")?;
    registry::register(&manager)?;
    Ok(env.run(manager).stop().await?)
}
