//! The benchmark operator on kube-rs: its Controller, plus kube-lease-manager, axum and prometheus-client for
//! the features of a manager.
//!
//! All libraries are used as documented, with their defaults.

mod pages;
mod webhook;

use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use futures_util::future::BoxFuture;
use futures_util::{StreamExt as _, future, stream};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Patch, PatchParams};
use kube::runtime::controller::{Action, Config};
use kube::runtime::{Controller, watcher};
use kube::{Api, Client, Resource, ResourceExt as _};
use kube_lease_manager::{LeaseManager, LeaseManagerBuilder};
use kubewright_bench_work::{Kind, NAMESPACE, Operator, Setup, Widget, Work};
use serde::de::DeserializeOwned;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use self::pages::Metrics;

/// Backoff after a failed reconcile.
const RETRY: Duration = Duration::from_secs(5);

/// The running operator on kube-rs.
pub struct Peer {
    asks: mpsc::Sender<()>,
    known: watch::Receiver<bool>,
    stop: CancellationToken,
    running: JoinHandle<()>,
    leading: JoinHandle<kube_lease_manager::Result<LeaseManager>>,
    pages: JoinHandle<std::io::Result<()>>,
}

#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error("failed to write the status")]
    Status(#[source] kube::Error),
}

/// Shared state of the reconcilers.
struct Context {
    client: Client,
    work: Arc<Work>,
    metrics: Metrics,
}

impl Operator for Peer {
    fn logs() -> Result<()> {
        tracing_subscriber::fmt().with_writer(std::io::stderr).init();
        Ok(())
    }

    async fn connect() -> Result<Client> {
        Ok(Client::try_default().await?)
    }

    async fn start(client: Client, setup: Setup, work: Arc<Work>) -> Result<Self> {
        let (metrics, pages) = pages::serve().await?;
        let lease = LeaseManagerBuilder::new(client.clone(), setup.lease).with_namespace(NAMESPACE);
        let (mut leads, leading) = lease.build().await?.watch().await;
        leads.wait_for(|leads| *leads).await.context("leader election stopped")?;

        let (asks, asked) = mpsc::channel(1);
        let stop = CancellationToken::new();
        let context = Arc::new(Context { client, work, metrics });
        let (known, running) = match setup.kind {
            Kind::Widgets => controller(widget, context, setup.workers, asked, &stop),
            Kind::Pods => controller(look::<Pod>, context, setup.workers, asked, &stop),
        };
        let running = tokio::spawn(async move {
            tokio::select! {
                biased;
                // Another replica may lead now, so stop everything.
                _ = leads.wait_for(|leads| !*leads) => warn!("lost leadership"),
                () = running => {}
            }
        });
        Ok(Self { asks, known, stop, running, leading, pages })
    }

    async fn ready(&self) -> Result<()> {
        self.known.clone().wait_for(|known| *known).await.context("the controller stopped")?;
        Ok(())
    }

    async fn again(&self, _: &[String]) -> Result<()> {
        self.asks.send(()).await.context("the controller stopped")
    }

    async fn stop(self) -> Result<()> {
        self.stop.cancel();
        self.running.await?;
        // The receiver was dropped with the controller, so the lease is released.
        self.leading.await??;
        self.pages.abort();
        Ok(())
    }
}

/// Returns the controller's future and a receiver that reports when its cache is synced.
fn controller<K, F>(
    reconcile: fn(Arc<K>, Arc<Context>) -> F,
    context: Arc<Context>,
    workers: u16,
    mut asked: mpsc::Receiver<()>,
    stop: &CancellationToken,
) -> (watch::Receiver<bool>, BoxFuture<'static, ()>)
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + DeserializeOwned
        + Clone
        + Debug
        + Send
        + Sync
        + 'static,
    F: Future<Output = Result<Action, Failed>> + Send + 'static,
{
    let api = Api::<K>::namespaced(context.client.clone(), NAMESPACE);
    let controller = Controller::new(api, watcher::Config::default());
    let store = controller.store();
    let (tell, known) = watch::channel(false);
    let measured = move |object: Arc<K>, context: Arc<Context>| async move {
        let started = Instant::now();
        let result = reconcile(object, context.clone()).await;
        context.metrics.reconciled(started.elapsed(), result.is_err());
        result
    };
    let run = controller
        .with_config(Config::default().concurrency(workers))
        .reconcile_all_on(stream::poll_fn(move |cx| asked.poll_recv(cx)))
        .graceful_shutdown_on(stop.clone().cancelled_owned())
        .run(measured, |_, _, _| Action::requeue(RETRY), context)
        .for_each(|result| {
            if let Err(error) = result {
                warn!(%error, "reconcile failed");
            }
            future::ready(())
        });
    let run = Box::pin(async move {
        let ready = async {
            if store.wait_until_ready().await.is_ok() {
                info!("Starting workers");
                tell.send_replace(true);
            }
            future::pending::<()>().await;
        };
        tokio::select! {
            biased;
            () = run => {}
            () = ready => {}
        }
    });
    (known, run)
}

async fn widget(widget: Arc<Widget>, context: Arc<Context>) -> Result<Action, Failed> {
    match context.work.patch_for(&widget) {
        None => context.work.looked(),
        Some(patch) => {
            let api = Api::<Widget>::namespaced(context.client.clone(), NAMESPACE);
            let owner = PatchParams { field_manager: Some("bench".to_owned()), ..PatchParams::default() };
            api.patch_status(&widget.name_any(), &owner, &Patch::Merge(patch))
                .await
                .map_err(Failed::Status)?;
            context.work.did();
        }
    }
    Ok(Action::await_change())
}

async fn look<K>(_: Arc<K>, context: Arc<Context>) -> Result<Action, Failed> {
    context.work.looked();
    Ok(Action::await_change())
}
