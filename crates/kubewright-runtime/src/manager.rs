//! The manager, which runs an operator's controllers.
//!
//! It owns all components and starts them in this order:
//! 1. the health probe and metrics servers, so that probes are answered from the start;
//! 2. the event broadcaster and the cache: watches start now, so standby replicas have a warm cache;
//! 3. controllers and tasks that run on every replica;
//! 4. leader election, and the controllers and tasks that run on the leader only.
//!
//! It stops controllers and tasks first, then the rest. It releases the Lease last, when no controller runs.

mod attached;
mod error;
mod group;
mod leader_task;
mod lifecycle;
mod manifest;
mod once;
mod options;
mod servers;
mod signals;
mod tasks;
mod webhooks;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use futures_util::FutureExt as _;
use http::Request;
use kubewright_sync::ordered_watch;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

pub use self::attached::Cluster;
pub use self::error::{ManagerError, RegisterError};
use self::group::Groups;
use self::leader_task::{LeaderTask, Standing};
pub use self::lifecycle::Handle;
use self::lifecycle::{Command, Life, Part, Parts, Place};
pub use self::manifest::{ControllerManifest, ConversionManifest, ManagerManifest};
pub use self::options::ManagerOptions;
pub use self::servers::Addresses;
use self::tasks::Task;
pub use self::tasks::TaskContext;
use crate::Key;
use crate::cache::{Cache, Caches, Informer};
use crate::client::Client;
use crate::controller::{Controller, ControllerDeps, ControllerMetrics, KindSource, Role};
use crate::debug_page::DebugPage;
use crate::election::{Election, ElectionMetrics, hostname};
use crate::events::{Broadcaster, Recorder};
use crate::fence::Fence;
use crate::health::Checks;
use crate::journal::Journal;
use crate::metrics::Metrics;
use crate::profiling::HeapProfile;
use crate::queue::{Causes, QueueMetrics};
use crate::reconcile::{self, Context, ContextParts, Error, ReconcileId};
use crate::webhook::{Declaration, Webhooks};

/// Runs controllers and the components that they need. Cheap to clone; clones share one manager.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kubewright_runtime::{Context, Manager, ManagerOptions, Outcome, Reconciler, Result};
///
/// struct Logger;
///
/// impl Reconciler for Logger {
///     type Object = ConfigMap;
///
///     async fn reconcile(&self, _: &ConfigMap, cx: &Context) -> Result<Outcome> {
///         tracing::info!("{} changed", cx.key());
///         Ok(Outcome::done())
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = kubewright_apiserver::ApiServer::new(kubewright_apiserver::Options::default());
/// # let client = kube::Client::new(server, "default");
/// let manager = Manager::new(client, ManagerOptions::new("logger"))?;
/// manager.controller(Logger).register()?;
/// # let stop = async {};
/// manager.run_until(stop).await?; // or run(), until SIGTERM
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Manager {
    inner: Arc<Inner>,
}

struct Inner {
    kube: kube::Client,
    client: Client,
    fence: Fence,
    cache: Cache,
    /// The caches of all clusters, for metrics and memory statistics.
    caches: Caches,
    healthz: Checks,
    readyz: Checks,
    recorder: Recorder,
    elected: ordered_watch::Sender<bool>,
    addresses: ordered_watch::Sender<Option<Addresses>>,
    queue_metrics: QueueMetrics,
    controller_metrics: ControllerMetrics,
    webhooks: Webhooks,
    heap_profiles: OnceLock<HeapProfile>,
    debug_page: OnceLock<Arc<dyn DebugPage>>,
    options: ManagerOptions,
    state: Mutex<State>,
}

struct State {
    rng: fastrand::Rng,
    names: BTreeSet<String>,
    controllers: Vec<(Controller, Life)>,
    tasks: Vec<(Task, Life)>,
    clusters: Vec<(Cluster, Life)>,
    webhooks: Vec<Declaration>,
    broadcaster: Option<Broadcaster>,
    election: Option<Election>,
    running: Option<Running>,
    /// Receives the manifest instead of running; set by [`Manager::describing`].
    on_manifest: Option<manifest::OnManifest>,
    before_run: Option<manifest::BeforeRun>,
}

/// The parts of a running manager that are needed to start further controllers.
#[derive(Clone)]
struct Running {
    commands: mpsc::UnboundedSender<Command>,
    journal: Option<Journal>,
}

impl Manager {
    /// Creates a manager. Must be called within a tokio runtime. Nothing starts before [`Manager::run`].
    ///
    /// Create the client with [`connect::client`](crate::connect::client). A client of `kube::Client::try_from` repeats
    /// any request after status 429, 503 or 504, so that one create can send two POSTs, also after the lease has expired.
    /// If you need such a client, set `default_retry` of its `kube::Config` to false.
    pub fn new(kube: kube::Client, options: ManagerOptions) -> Result<Self, ManagerError> {
        let mut rng = options.seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed);
        let mut cache = options.cache.clone();
        cache.seed = cache.seed.or(Some(rng.u64(..)));
        let cache = Cache::new(cache)?;
        let caches = Caches::default();
        caches.add(None, &cache);
        let (queue_metrics, controller_metrics, election_metrics) =
            options.metrics.with_registry(|registry| {
                registry.register_collector(Box::new(caches.clone()));
                let election = options.leader_election.is_some().then(|| ElectionMetrics::register(registry));
                (QueueMetrics::register(registry), ControllerMetrics::register(registry), election)
            });
        let election = match &options.leader_election {
            Some(election) => {
                let election =
                    Election::new(kube.clone(), election.clone(), options.clock.clone(), rng.fork())?;
                Some(match &election_metrics {
                    Some(metrics) => election.with_metrics(metrics),
                    None => election,
                })
            }
            None => None,
        };
        let broadcaster = Broadcaster::new(&hostname(), options.clock.clone(), rng.fork());
        let recorder = broadcaster.recorder(&options.name);
        let election = election.map(|election| election.with_events(recorder.clone()));
        let fence = election.as_ref().map_or_else(Fence::open, Election::fence);
        let client = Client::on(kube.clone(), Some(cache.clone()), fence.clone()).field_owner(&options.name);
        let readyz = Checks::new("readyz");
        let watched = cache.clone();
        readyz.add("informer-sync", move || watched.health());
        Ok(Self {
            inner: Arc::new(Inner {
                kube,
                client,
                fence,
                cache,
                caches,
                healthz: Checks::new("healthz"),
                readyz,
                recorder: if options.events_ignore_note { recorder.ignoring_notes() } else { recorder },
                elected: ordered_watch::Sender::new(false),
                addresses: ordered_watch::Sender::new(None),
                queue_metrics,
                controller_metrics,
                webhooks: Webhooks::new(),
                heap_profiles: OnceLock::new(),
                debug_page: OnceLock::new(),
                state: Mutex::new(State {
                    rng,
                    names: BTreeSet::new(),
                    controllers: Vec::new(),
                    tasks: Vec::new(),
                    clusters: Vec::new(),
                    webhooks: Vec::new(),
                    broadcaster: Some(broadcaster),
                    election,
                    running: None,
                    on_manifest: None,
                    before_run: None,
                }),
                options,
            }),
        })
    }

    /// Creates a manager without a connection that runs nothing: [`Manager::run`] calls the function with the manifest
    /// and returns. With it, a program can generate its own manifests, such as its RBAC rules.
    ///
    /// Requests made before that get status 503.
    pub fn describing(
        mut options: ManagerOptions,
        on_manifest: impl FnOnce(ManagerManifest) + Send + 'static,
    ) -> Result<Self, ManagerError> {
        // Leader election needs the pod's namespace, which is unknown outside of a pod.
        options.leader_election = None;
        let manager = Self::new(manifest::nowhere(), options)?;
        manager.state().on_manifest = Some(Box::new(on_manifest));
        Ok(manager)
    }

    pub(crate) fn options(&self) -> &ManagerOptions {
        &self.inner.options
    }

    /// The controllers, webhooks and kinds registered so far.
    pub fn manifest(&self) -> ManagerManifest {
        let state = self.state();
        let controllers = state.controllers.iter().map(|(it, _)| ControllerManifest::from(it)).collect();
        let options = &self.inner.options;
        ManagerManifest {
            name: options.name.clone(),
            controllers,
            namespaces: options.cache.default_namespaces(),
            cached: manifest::cached(&self.inner.cache),
            webhooks: state.webhooks.clone(),
            conversions: self.inner.webhooks.conversions().iter().map(Into::into).collect(),
            api_services: self.inner.webhooks.apis(),
        }
    }

    /// Calls a function with the manifest when the manager runs, before anything starts. If it fails, the manager does
    /// not start. Test environments use it to create what the operator needs, such as its RBAC rules.
    pub fn before_run<F>(&self, prepare: impl FnOnce(ManagerManifest) -> F + Send + 'static)
    where
        F: Future<Output = Result<(), Error>> + Send + 'static,
    {
        self.state().before_run = Some(Box::new(|manifest| prepare(manifest).boxed()));
    }

    async fn prepare(&self) -> Result<(), ManagerError> {
        let prepare = self.state().before_run.take();
        match prepare {
            Some(prepare) => prepare(self.manifest()).await.map_err(ManagerError::BeforeRun),
            None => Ok(()),
        }
    }

    /// The client. It reads watched kinds from the cache and everything else from the API server.
    ///
    /// It can be stored in a reconciler. With leader election, it sends writes only while this replica leads, and they
    /// fail with [`client::Error::Fenced`](crate::client::Error::Fenced) otherwise. In a reconcile, it writes as
    /// [`Context::client`] does. For writes on every replica, use [`Manager::task_without_leader`], or
    /// [`Client::unfenced`].
    pub fn client(&self) -> &Client {
        &self.inner.client
    }

    /// The cache.
    pub fn cache(&self) -> &Cache {
        &self.inner.cache
    }

    /// The metrics registry; register your own metrics here.
    pub fn metrics(&self) -> &Metrics {
        &self.inner.options.metrics
    }

    /// The event recorder of the operator.
    pub fn events(&self) -> &Recorder {
        &self.inner.recorder
    }

    /// The checks of `/healthz` (liveness).
    pub fn healthz(&self) -> &Checks {
        &self.inner.healthz
    }

    /// The checks of `/readyz` (readiness).
    pub fn readyz(&self) -> &Checks {
        &self.inner.readyz
    }

    /// Resolves once this replica leads. Without leader election, it resolves at the start.
    pub async fn elected(&self) {
        // The sender lives in `self`, so the channel does not close.
        let _ = self.inner.elected.subscribe().wait_for(|elected| *elected).await;
    }

    /// The addresses that the manager listens on, once it does. A configured port 0 is replaced by the assigned port.
    pub async fn addresses(&self) -> Addresses {
        let mut addresses = self.inner.addresses.subscribe();
        let found = addresses.wait_for(Option::is_some).await;
        found.ok().flatten().expect("the sender lives in `self`, so the wait ends with an address")
    }

    pub(crate) fn add_controller(&self, mut controller: Controller) -> Result<Handle, RegisterError> {
        let name = controller.name.to_string();
        if name.is_empty() {
            return Err(RegisterError::Nameless);
        }
        let triggers = controller.sources.iter().any(|source| source.role != Role::Read);
        if !triggers && controller.channels.is_empty() {
            return Err(RegisterError::NoSource(name));
        }
        self.reserve(&name)?;
        let (life, handle) = Life::new(&self.inner, &name, true);
        let mut state = self.state();
        match state.running.clone() {
            None => {
                for source in &mut controller.sources {
                    source.declare(&self.inner.cache);
                }
                state.controllers.push((controller, life));
            }
            Some(running) => {
                let rng = state.rng.fork();
                drop(state);
                // Start the watches now, also on a standby replica.
                for source in &controller.sources {
                    self.inner.watch(source);
                }
                running.start(self.controller_part(controller, life, running.journal.clone(), rng))?;
            }
        }
        Ok(handle)
    }

    /// Reserves a name that no other controller or cluster has. [`Life`] releases it.
    fn reserve(&self, name: &str) -> Result<(), RegisterError> {
        if self.state().names.insert(name.to_owned()) {
            return Ok(());
        }
        Err(RegisterError::NameTaken(name.to_owned()))
    }

    fn controller_part(
        &self,
        controller: Controller,
        life: Life,
        journal: Option<Journal>,
        rng: fastrand::Rng,
    ) -> Part {
        let inner = &self.inner;
        let needs_leader = controller.options.needs_leader;
        let warms_up = needs_leader && controller.options.warmup;
        let deps = ControllerDeps {
            client: self.client_for(needs_leader),
            cache: inner.cache.clone(),
            recorder: inner.recorder.clone(),
            clock: inner.options.clock.clone(),
            queue_metrics: inner.queue_metrics.clone(),
            metrics: inner.controller_metrics.clone(),
            journal,
            rng,
            elected: warms_up.then(|| inner.elected.subscribe()),
        };
        let place = match (needs_leader, warms_up) {
            (true, true) => Place::Warming,
            (true, false) => Place::Leading,
            (false, _) => Place::Always,
        };
        Part {
            name: format!("controller {}", controller.name),
            place,
            life,
            run: Box::new(move |cancel| Box::pin(async move { Ok(controller.run(deps, cancel).await?) })),
        }
    }

    /// The context of a reconcile that runs outside of a controller.
    fn context(&self, controller: &str, client: Client, key: &Key, owned: Arc<[Arc<Informer>]>) -> Context {
        Context::from(ContextParts {
            client,
            key: key.clone(),
            informer: None,
            owned,
            removal: None,
            id: ReconcileId(self.state().rng.u128(..)),
            controller: controller.into(),
            recorder: self.inner.recorder.clone(),
            clock: self.inner.options.clock.clone(),
            cancel: CancellationToken::new(),
            causes: Causes::default(),
            retries: 0,
        })
    }

    /// Runs until SIGTERM or SIGINT, or until a component fails. A second signal does not wait for running reconciles.
    ///
    /// The return type fits an operator's `main`. The error is a [`ManagerError`], available through `downcast_ref`;
    /// [`Manager::run_until`] returns it directly.
    pub async fn run(self) -> reconcile::Result<()> {
        let signals = signals::Signals::new().map_err(ManagerError::Signals)?;
        Ok(signals.around(|stop| self.run_until(stop)).await?)
    }

    /// Runs until `stop` resolves, or until a component fails.
    ///
    /// Dropping the future stops everything immediately and leaves the Lease to expire.
    pub async fn run_until(self, stop: impl Future<Output = ()>) -> Result<(), ManagerError> {
        let on_manifest = self.state().on_manifest.take();
        if let Some(on_manifest) = on_manifest {
            on_manifest(self.manifest());
            return Ok(());
        }
        self.prepare().await?;
        let Started { mut groups, election, mut parts } = self.start().await?;
        let inner = &self.inner;
        let election_stop = CancellationToken::new();
        let mut leader = LeaderTask::begin(election, election_stop.clone());
        let mut stop = std::pin::pin!(stop);
        let failure = loop {
            let waits = parts.wait_for_leadership();
            tokio::select! {
                biased;
                () = &mut stop => break None,
                failure = groups.failure() => break Some(failure),
                command = parts.command() => parts.obey(command, &mut groups),
                standing = leader.next(waits) => match standing {
                    Standing::Leads => {
                        inner.elected.send_modify(|elected| *elected = true);
                        parts.lead(&mut groups);
                    }
                    Standing::Lost => break Some(ManagerError::LeadershipLost),
                },
            }
        };
        match &failure {
            None => info!("Stopping manager"),
            Some(failure) => error!(error = %crate::error::Chain(failure), "Stopping manager after an error"),
        }
        let ended = match failure {
            // A former leader must not finish running reconciles.
            Some(ManagerError::LeadershipLost) => {
                groups.end_now().await;
                Err(ManagerError::LeadershipLost)
            }
            failure => {
                let ended = groups.end(inner.options.graceful_shutdown_timeout).await;
                failure.map_or(ended, Err)
            }
        };
        election_stop.cancel();
        leader.end().await;
        ended
    }

    async fn start(&self) -> Result<Started, ManagerError> {
        let inner = &self.inner;
        // It runs with the servers, which stop last, so that it records reconciles until the end.
        let (journal, writer, records) = self.journal();
        let (commands, mut parts) = Parts::new();
        let (controllers, tasks, clusters, broadcaster, election, mut rng) = {
            let mut state = self.state();
            let broadcaster = state.broadcaster.take().ok_or(ManagerError::RanBefore)?;
            state.running = Some(Running { commands, journal: journal.clone() });
            let rng = state.rng.fork();
            (
                std::mem::take(&mut state.controllers),
                std::mem::take(&mut state.tasks),
                std::mem::take(&mut state.clusters),
                broadcaster,
                state.election.take(),
                rng,
            )
        };
        // All watches start now, so that a standby replica has a warm cache. They are registered before the cache
        // starts, because sources wait for every informer that is registered at the start.
        let (optional, required): (Vec<_>, Vec<_>) =
            controllers.iter().flat_map(|(it, _)| &it.sources).partition(|source| source.optional);
        for source in required {
            inner.watch(source);
        }
        let mut groups = Groups::default();
        // Before any step that can fail: dropping it stops the informers, so that no caller waits for them.
        let watches = inner.cache.run(inner.kube.clone(), groups.cache.stop.clone());
        let clusters: Vec<Part> = clusters.into_iter().map(|(cluster, life)| cluster.part(life)).collect();
        // Registered after the caches started, so that no source waits for them.
        for source in optional {
            inner.watch(source);
        }
        let names: Vec<String> = controllers.iter().map(|(it, _)| it.name.to_string()).collect();
        self.serve(&mut groups).await?;
        if let Some(records) = records {
            self.follow_for_page(records, names.clone(), &mut groups);
        }
        let (kube, stop) = (self.events_client(election.is_some()), groups.events.stop.clone());
        if let Some(writer) = writer {
            let written = writer.run(inner.options.name.clone(), names, groups.servers.stop.clone());
            groups.servers.spawn("journal", written.map(Ok));
        }
        groups.events.spawn("events", async move {
            broadcaster.run(kube, stop.cancelled()).await;
            Ok(())
        });
        groups.cache.spawn("cache", watches.map(Ok));
        for cluster in clusters {
            parts.start(cluster, &mut groups);
        }
        for (controller, life) in controllers {
            parts.start(self.controller_part(controller, life, journal.clone(), rng.fork()), &mut groups);
        }
        for (task, life) in tasks {
            parts.start(self.task_part(task, life), &mut groups);
        }
        Ok(Started { groups, election, parts })
    }

    fn client_for(&self, needs_leader: bool) -> Client {
        let fence = if needs_leader { self.inner.fence.clone() } else { Fence::open() };
        self.inner.client.fenced(fence)
    }

    /// The client for events. Once this replica has led, it writes events only while it still leads.
    fn events_client(&self, contends: bool) -> kube::Client {
        let Inner { kube, fence, elected, .. } = &*self.inner;
        if !contends {
            return kube.clone();
        }
        let (kube, fence, elected) = (kube.clone(), fence.clone(), elected.subscribe());
        let namespace = kube.default_namespace().to_owned();
        let fenced = tower::service_fn(move |request: Request<kube::client::Body>| {
            let (kube, fence, led) = (kube.clone(), fence.clone(), *elected.borrow());
            async move {
                if !led {
                    return kube.send(request).await;
                }
                let sent = fence.guard(kube.send(request)).await;
                sent.unwrap_or_else(|fenced| Err(kube::Error::Service(Box::new(fenced))))
            }
        });
        kube::Client::new(fenced, namespace)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.inner.state()
    }
}

impl Inner {
    fn watch(&self, source: &KindSource) {
        let informer = source.informer(&self.cache);
        let cache = source.other_cache().unwrap_or(&self.cache);
        if source.optional && !cache.initial().iter().any(|it| Arc::ptr_eq(it, &informer)) {
            informer.set_optional(true);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops controllers, tasks and clusters that were removed before they started.
    fn drop_removed(&self) {
        let mut state = self.state();
        if let Some(running) = &state.running {
            // The send fails if the manager has stopped, which has dropped everything.
            let _ = running.commands.send(Command::DropRemoved);
            return;
        }
        let controllers: Vec<_> = state.controllers.extract_if(.., |(_, life)| life.is_removed()).collect();
        let tasks: Vec<_> = state.tasks.extract_if(.., |(_, life)| life.is_removed()).collect();
        let clusters: Vec<_> = state.clusters.extract_if(.., |(_, life)| life.is_removed()).collect();
        // Dropping `Life` releases the name, which takes the lock.
        drop(state);
        drop((controllers, tasks, clusters));
    }
}

impl Running {
    fn start(&self, part: Part) -> Result<(), RegisterError> {
        let name = part.name.clone();
        self.commands.send(Command::Start(part)).map_err(|_| RegisterError::Stopped(name))
    }
}

struct Started {
    groups: Groups,
    election: Option<Election>,
    parts: Parts,
}
