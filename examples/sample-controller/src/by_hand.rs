//! The controller of Bars without a manager, as in kubernetes/sample-controller: informers, listers, an indexer, event
//! handlers, a work queue and workers.
//!
//! It does what [`controllers::bar`](crate::controllers::bar) does, and needs the same role. It has no leader election,
//! health probes and metrics: run one replica.

mod handlers;

use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use kubewright::client::ignore_not_found;
use kubewright::events::{Broadcaster, Recorder};
use kubewright::finalizer::{self, Event};
use kubewright::informer::{Indexer, Informer, Lister};
use kubewright::jiff::Timestamp;
use kubewright::owner::is_controlled_by;
use kubewright::prelude::*;
use kubewright::queue::WorkQueue;
use kubewright::tracing::{debug, error, info};
use kubewright::{Cache, CacheOptions, Client, Delete, Key, Result, SystemClock};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::handlers::{BarHandler, DeploymentHandler};
use crate::api::v1alpha1::Bar;
use crate::bar::{self, BY_DEPLOYMENT, BY_OWNER, ERR_RESOURCE_EXISTS, FINALIZER, NotOwned};
use crate::inventory::{Inventory, Registration};

/// The name in events and of the field manager.
const NAME: &str = "sample-controller";

/// The controller, with everything that a manager would provide.
struct Controller {
    kube: kube::Client,
    /// Writes. Reads go through the listers.
    client: Client,
    /// Runs the watches of both informers.
    cache: Cache,
    bars: Informer<Bar>,
    deployments: Informer<Deployment>,
    bar_lister: Lister<Bar>,
    deployment_lister: Lister<Deployment>,
    deployment_indexer: Indexer<Deployment>,
    queue: WorkQueue,
    recorder: Recorder,
    inventory: Arc<dyn Inventory>,
}

/// Runs the controller with a number of workers until `stop` resolves. Returns when all workers have ended.
pub async fn run(
    kube: kube::Client,
    options: CacheOptions,
    inventory: Arc<dyn Inventory>,
    workers: usize,
    stop: impl Future<Output = ()>,
) -> Result<()> {
    let broadcaster = Broadcaster::new(NAME, Arc::new(SystemClock), fastrand::Rng::new());
    let controller = Arc::new(Controller::new(kube, options, broadcaster.recorder(NAME), inventory)?);
    let cancel = CancellationToken::new();
    let mut tasks = JoinSet::new();
    let events = broadcaster.run(controller.kube.clone(), cancel.clone().cancelled_owned());
    tasks.spawn(events);
    controller.start_informers(&mut tasks, &cancel);
    let work = async {
        // Before the first lists are complete, the listers return errors.
        controller.cache.synced().await?;
        info!(workers, "Starting workers");
        for _ in 0..workers {
            tasks.spawn(run_worker(controller.clone()));
        }
        std::future::pending::<Result<()>>().await
    };
    let ended = tokio::select! {
        ended = work => ended,
        () = stop => Ok(()),
    };
    info!("Shutting down workers");
    controller.queue.shut_down_with_drain().await;
    cancel.cancel();
    while tasks.join_next().await.is_some() {}
    ended
}

impl Controller {
    fn new(
        kube: kube::Client,
        options: CacheOptions,
        recorder: Recorder,
        inventory: Arc<dyn Inventory>,
    ) -> Result<Self> {
        let cache = Cache::new(options)?;
        let (bars, deployments) = (Informer::<Bar>::new(&cache), Informer::<Deployment>::new(&cache));
        bars.indexer().add_index(BY_DEPLOYMENT, bar::deployment_keys)?;
        deployments.indexer().add_index(BY_OWNER, bar::owner_uids)?;
        Ok(Self {
            client: Client::new(kube.clone()).field_owner(NAME),
            kube,
            bar_lister: bars.lister(),
            deployment_lister: deployments.lister(),
            deployment_indexer: deployments.indexer(),
            cache,
            bars,
            deployments,
            queue: WorkQueue::new(),
            recorder,
            inventory,
        })
    }

    /// Starts the watches, and the delivery of events to the handlers.
    fn start_informers(&self, tasks: &mut JoinSet<()>, cancel: &CancellationToken) {
        tasks.spawn(self.bars.add_event_handler(BarHandler { queue: self.queue.clone() }));
        tasks.spawn(
            self.deployments.add_event_handler(DeploymentHandler {
                queue: self.queue.clone(),
                bars: self.bars.indexer(),
            }),
        );
        tasks.spawn(self.cache.run(self.kube.clone(), cancel.clone()));
    }

    /// Processes the next key of the queue. Returns false when the queue is shut down.
    async fn process_next_item(&self) -> bool {
        // Dropping the item at the end of this function marks it as done.
        let Some(key) = self.queue.get().await else { return false };
        match self.sync_handler(&key).await {
            Ok(()) => {
                self.queue.forget(&key);
                debug!(bar = %*key, "Successfully synced");
            }
            Err(error) if error.is::<NotOwned>() => {
                // A retry cannot help. The key is added again when the Bar or the Deployment changes.
                self.queue.forget(&key);
                error!(bar = %*key, error = format!("{error:#}"), "Reconciler error");
            }
            Err(error) if bar::is_stale(&error) => {
                let delay = self.queue.add_rate_limited(key.clone());
                debug!(bar = %*key, ?delay, error = format!("{error:#}"), "Stale cache; requeueing");
            }
            Err(error) => {
                let delay = self.queue.add_rate_limited(key.clone());
                error!(bar = %*key, ?delay, error = format!("{error:#}"), "Error syncing; requeueing");
            }
        }
        true
    }

    /// Moves the cluster's actual state toward the desired state of the Bar with this key.
    async fn sync_handler(&self, key: &Key) -> Result<()> {
        let Some(bar) = self.bar_lister.get(key)? else {
            debug!(bar = %key, "Bar in work queue no longer exists");
            return Ok(());
        };
        finalizer::run(&self.client, &*bar, FINALIZER, async |event| match event {
            Event::Apply(bar) => self.apply(bar).await,
            Event::Cleanup(_) => self.inventory.unregister(key).await,
        })
        .await
    }

    async fn apply(&self, bar: &Bar) -> Result<()> {
        let synced = self.sync(bar).await;
        if let Some(status) = bar::status(bar, &synced, Timestamp::now()) {
            self.client.set_status(bar, &status).await?;
        }
        match &synced {
            Err(error) if error.is::<NotOwned>() => {
                self.recorder.warning(bar, ERR_RESOURCE_EXISTS).action("Sync").note(error);
            }
            _ => {}
        }
        synced.map(drop)
    }

    /// Creates or updates the Deployment, deletes the one with the previous name, and registers the Bar.
    async fn sync(&self, bar: &Bar) -> Result<Deployment> {
        let wanted = bar::deployment(bar)?;
        let key = Key::of(&wanted);
        let deployment = match self.deployment_lister.get(&key)? {
            // A create fails if the cache does not have the Deployment yet. An apply would take over the fields of its owner.
            None => self.client.create(&wanted).await?,
            Some(found) if !is_controlled_by(&*found, bar) => return Err(NotOwned(key).into()),
            Some(_) => self.client.apply(&wanted).await?,
        };
        for old in self.deployment_indexer.by_index(BY_OWNER, &bar.uid().unwrap_or_default())? {
            if Key::of(&*old) != key {
                let how = Delete::background().uid(old.uid().unwrap_or_default());
                ignore_not_found(self.client.delete_with(&*old, &how).await)?;
                let note = format_args!("Deleted Deployment {}", old.name_any());
                self.recorder.normal(bar, "Deleted").note(note);
            }
        }
        let registration = Registration { deployment_name: bar.spec.deployment_name.clone() };
        self.inventory.register(&Key::of(bar), &registration).await?;
        Ok(deployment)
    }
}

async fn run_worker(controller: Arc<Controller>) {
    while controller.process_next_item().await {}
}
