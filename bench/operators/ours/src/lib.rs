//! The benchmark operator on kubewright-runtime: a complete manager with one controller.

mod webhook;

use std::marker::PhantomData;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::Pod;
use kubewright_bench_work::{Kind, NAMESPACE, Operator, Setup, Widget, Work};
use kubewright_runtime::{
    Context, Key, LeaderElectionOptions, Manager, ManagerError, ManagerOptions, Object, Outcome, Patch,
    Reconciler, connect, logs,
};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Capacity of the channel that triggers reconciles.
const ASKED: usize = 1024;

/// The running operator on kubewright-runtime.
pub struct Ours {
    manager: Manager,
    asks: mpsc::Sender<Key>,
    stop: CancellationToken,
    running: JoinHandle<Result<(), ManagerError>>,
}

impl Operator for Ours {
    fn logs() -> Result<()> {
        Ok(logs::init(&logs::Options::default())?)
    }

    async fn connect() -> Result<kube::Client> {
        let config = connect::infer(&connect::Source::default()).await?;
        Ok(connect::client(config, connect::Options::default())?)
    }

    async fn start(client: kube::Client, setup: Setup, work: Arc<Work>) -> Result<Self> {
        let options = ManagerOptions {
            health_probe_bind_address: "127.0.0.1:0".parse()?,
            metrics_bind_address: "127.0.0.1:0".parse()?,
            leader_election: Some(LeaderElectionOptions {
                namespace: Some(NAMESPACE.to_owned()),
                ..LeaderElectionOptions::new(setup.lease)
            }),
            ..ManagerOptions::new("bench").namespaces([NAMESPACE])
        };
        let manager = Manager::new(client, options)?;
        let (asks, asked) = mpsc::channel(ASKED);
        let controller = match setup.kind {
            Kind::Widgets => manager.controller(Widgets(work)),
            Kind::Pods => manager.controller(Looks::<Pod>(work, PhantomData)),
        };
        controller.channel(asked).concurrency(setup.workers.into()).register()?;
        let stop = CancellationToken::new();
        let running = tokio::spawn(manager.clone().run_until(stop.clone().cancelled_owned()));
        Ok(Self { manager, asks, stop, running })
    }

    async fn ready(&self) -> Result<()> {
        self.manager.elected().await;
        Ok(self.manager.cache().synced().await?)
    }

    async fn again(&self, names: &[String]) -> Result<()> {
        for name in names {
            self.asks.send(Key::namespaced(NAMESPACE, name)).await.context("the controller stopped")?;
        }
        Ok(())
    }

    async fn stop(self) -> Result<()> {
        self.stop.cancel();
        Ok(self.running.await??)
    }
}

/// Reconciles widgets.
struct Widgets(Arc<Work>);

impl Reconciler for Widgets {
    type Object = Widget;

    async fn reconcile(&self, widget: &Widget, cx: &Context) -> kubewright_runtime::Result<Outcome> {
        match self.0.patch_for(widget) {
            None => self.0.looked(),
            Some(patch) => {
                cx.client().status().patch(widget, &Patch::merge(patch)).await?;
                self.0.did();
            }
        }
        Ok(Outcome::done())
    }
}

/// Reads objects without changing them.
struct Looks<K>(Arc<Work>, PhantomData<K>);

impl<K: Object> Reconciler for Looks<K> {
    type Object = K;

    async fn reconcile(&self, _: &K, _: &Context) -> kubewright_runtime::Result<Outcome> {
        self.0.looked();
        Ok(Outcome::done())
    }
}
