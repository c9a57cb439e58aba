//! The manager: what an operator runs in.
//!
//! It owns the connection, the cache, the controllers and everything beside them, and starts and ends them in order:
//!
//! 1. the servers of health and metrics, so that probes are answered from the start;
//! 2. the recorder of events, and the cache, whose watches begin at once: a replica that does not lead is warm;
//! 3. what runs on every replica;
//! 4. the election, and what runs on the leader only.
//!
//! It ends in the other order: what reconciles first, then cache, events, servers, and the Lease last, so that nobody
//! else leads while something here still runs. Whoever loses the Lease ends at once.

mod contest;
mod error;
mod group;
mod options;
mod outline;
mod signals;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::Request;
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

use self::contest::{Contest, Standing};
pub use self::error::{ManagerError, RegisterError};
use self::group::{Group, Groups};
pub use self::options::ManagerOptions;
pub use self::outline::{ControllerOutline, Outline};
use crate::cache::Cache;
use crate::certs::{CertificateMetrics, Certificates};
use crate::client::Client;
use crate::controller::{Controller, ControllerMetrics, Surroundings};
use crate::election::{Election, ElectionMetrics};
use crate::events::{Broadcaster, Recorder};
use crate::fence::Fence;
use crate::health::{self, Checks};
use crate::journal::Journal;
use crate::metrics::{Guard, Metrics};
use crate::queue::{Causes, QueueMetrics};
use crate::reconcile::{self, Context, ReconcileId};
use crate::serve::Server;
use crate::{Key, watch};

/// Runs controllers and what they need. Cheap to clone; clones are the same manager.
///
/// ```
/// use std::sync::Arc;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kubewright_runtime::{Context, Manager, ManagerOptions, Outcome, Reconciler, Result};
///
/// struct Logger;
///
/// impl Reconciler for Logger {
///     type Object = ConfigMap;
///
///     async fn reconcile(&self, _: Arc<ConfigMap>, cx: &Context) -> Result<Outcome> {
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
    healthz: Checks,
    readyz: Checks,
    recorder: Recorder,
    elected: watch::Sender<bool>,
    addresses: watch::Sender<Option<Addresses>>,
    queue_metrics: QueueMetrics,
    controller_metrics: ControllerMetrics,
    options: ManagerOptions,
    state: Mutex<State>,
}

struct State {
    rng: fastrand::Rng,
    names: BTreeSet<String>,
    controllers: Vec<Controller>,
    tasks: Vec<Task>,
    broadcaster: Option<Broadcaster>,
    election: Option<Election>,
    running: bool,
    /// Who is told what would run, instead of running it.
    told: Option<outline::Told>,
}

struct Task {
    name: String,
    needs_leader: bool,
    start: Box<dyn FnOnce(TaskContext) -> BoxFuture<'static, Result<(), reconcile::Error>> + Send>,
}

/// Where a manager listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addresses {
    /// Where `/healthz` and `/readyz` are.
    pub health_probe: Option<SocketAddr>,
    /// Where `/metrics` is.
    pub metrics: Option<SocketAddr>,
}

/// What a task may use.
#[derive(Clone)]
pub struct TaskContext {
    client: Client,
    stop: CancellationToken,
}

impl TaskContext {
    /// The client. Of tasks that run on the leader only, it writes only as long as that is so.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Resolves when the task must end.
    pub fn stopped(&self) -> impl Future<Output = ()> + '_ {
        self.stop.cancelled()
    }

    /// Whether the task must end.
    pub fn is_stopped(&self) -> bool {
        self.stop.is_cancelled()
    }
}

impl Manager {
    /// A manager on a connection. Must be called within a runtime. Nothing starts before [`Manager::run`].
    pub fn new(kube: kube::Client, options: ManagerOptions) -> Result<Self, ManagerError> {
        let mut rng = options.seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed);
        let mut cache = options.cache.clone();
        cache.seed = cache.seed.or(Some(rng.u64(..)));
        let cache = Cache::new(cache);
        let (queue_metrics, controller_metrics, election_metrics) =
            options.metrics.with_registry(|registry| {
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
        let client = Client::cached(kube.clone(), cache.clone()).field_owner(&options.name);
        let readyz = Checks::new("readyz");
        let watched = cache.clone();
        readyz.add("informer-sync", move || match watched.unsynced().as_slice() {
            [] => Ok(()),
            some => {
                let kinds: Vec<String> = some.iter().map(ToString::to_string).collect();
                Err(format!("not listed yet: {}", kinds.join("; ")))
            }
        });
        Ok(Self {
            inner: Arc::new(Inner {
                kube,
                client,
                fence: election.as_ref().map_or_else(Fence::open, Election::fence),
                cache,
                healthz: Checks::new("healthz"),
                readyz,
                recorder: if options.events_by_note { recorder.by_note() } else { recorder },
                elected: watch::Sender::new(false),
                addresses: watch::Sender::new(None),
                queue_metrics,
                controller_metrics,
                state: Mutex::new(State {
                    rng,
                    names: BTreeSet::new(),
                    controllers: Vec::new(),
                    tasks: Vec::new(),
                    broadcaster: Some(broadcaster),
                    election,
                    running: false,
                    told: None,
                }),
                options,
            }),
        })
    }

    /// A manager that is connected to nothing, and runs nothing: [`Manager::run`] tells what was registered, and
    /// returns. This is how a program finds out about itself, for instance which rights it needs.
    ///
    /// Requests that are made before that are answered with status 503.
    pub fn describing(
        mut options: ManagerOptions,
        told: impl FnOnce(Outline) + Send + 'static,
    ) -> Result<Self, ManagerError> {
        // A pod's namespace, which an election may need, is found in a pod only.
        options.leader_election = None;
        let manager = Self::new(outline::nowhere(), options)?;
        manager.state().told = Some(Box::new(told));
        Ok(manager)
    }

    /// What is registered so far.
    pub fn outline(&self) -> Outline {
        let state = self.state();
        let controllers = state.controllers.iter().map(ControllerOutline::from).collect();
        let options = &self.inner.options;
        Outline { name: options.name.clone(), controllers, namespaces: options.cache.namespaces.clone() }
    }

    /// The client: reads from the cache where it watches, from the server otherwise. No fence holds it back.
    pub fn client(&self) -> &Client {
        &self.inner.client
    }

    /// The cache.
    pub fn cache(&self) -> &Cache {
        &self.inner.cache
    }

    /// Where things are counted; register your own metrics here.
    pub fn metrics(&self) -> &Metrics {
        &self.inner.options.metrics
    }

    /// Records events in the operator's name.
    pub fn events(&self) -> &Recorder {
        &self.inner.recorder
    }

    /// The checks of `/healthz`: whether the process must be restarted.
    pub fn healthz(&self) -> &Checks {
        &self.inner.healthz
    }

    /// The checks of `/readyz`: whether the process is of use now.
    pub fn readyz(&self) -> &Checks {
        &self.inner.readyz
    }

    /// Resolves once this replica leads; at once after the start if there is no election.
    pub async fn elected(&self) {
        self.inner.elected.subscribe().wait_for(|elected| *elected).await;
    }

    /// Where the manager listens, once it does: the ports that were had, where port 0 was asked for.
    pub async fn addresses(&self) -> Addresses {
        let mut addresses = self.inner.addresses.subscribe();
        addresses.wait_for(Option::is_some).await.expect("it waits until it is there")
    }

    /// Runs a task on the leader only. The manager ends if it fails.
    pub fn task<F>(
        &self,
        name: &str,
        task: impl FnOnce(TaskContext) -> F + Send + 'static,
    ) -> Result<(), RegisterError>
    where
        F: Future<Output = Result<(), reconcile::Error>> + Send + 'static,
    {
        self.add_task(name, true, task)
    }

    /// Runs a task on every replica. The manager ends if it fails.
    pub fn task_without_leader<F>(
        &self,
        name: &str,
        task: impl FnOnce(TaskContext) -> F + Send + 'static,
    ) -> Result<(), RegisterError>
    where
        F: Future<Output = Result<(), reconcile::Error>> + Send + 'static,
    {
        self.add_task(name, false, task)
    }

    fn add_task<F>(
        &self,
        name: &str,
        needs_leader: bool,
        task: impl FnOnce(TaskContext) -> F + Send + 'static,
    ) -> Result<(), RegisterError>
    where
        F: Future<Output = Result<(), reconcile::Error>> + Send + 'static,
    {
        let mut state = self.state();
        if state.running {
            return Err(RegisterError::Running(name.to_owned()));
        }
        let start = Box::new(|cx| -> BoxFuture<'static, _> { Box::pin(task(cx)) });
        state.tasks.push(Task { name: name.to_owned(), needs_leader, start });
        Ok(())
    }

    pub(crate) fn add_controller(&self, controller: Controller) -> Result<(), RegisterError> {
        let name = controller.name.to_string();
        let mut state = self.state();
        if state.running {
            return Err(RegisterError::Running(name));
        }
        if name.is_empty() {
            return Err(RegisterError::Nameless);
        }
        if controller.sources.is_empty() && controller.channels.is_empty() {
            return Err(RegisterError::NoSource(name));
        }
        if !state.names.insert(name.clone()) {
            return Err(RegisterError::NameTaken(name));
        }
        state.controllers.push(controller);
        Ok(())
    }

    /// What a reconcile outside of every controller gets.
    pub(crate) fn context(&self, controller: &str, client: Client, key: &Key) -> Context {
        Context {
            client,
            key: key.clone(),
            informer: None,
            id: ReconcileId(self.state().rng.u128(..)),
            controller: controller.into(),
            recorder: self.inner.recorder.clone(),
            clock: self.inner.options.clock.clone(),
            cancel: CancellationToken::new(),
            causes: Causes::default(),
            retries: 0,
        }
    }

    /// Runs until SIGTERM or SIGINT, or until something fails. A second signal does not wait for what still runs.
    pub async fn run(self) -> Result<(), ManagerError> {
        let signals = signals::Signals::new().map_err(ManagerError::Signals)?;
        signals.around(|stop| self.run_until(stop)).await
    }

    /// Runs until `stop` resolves, or until something fails.
    ///
    /// Whoever drops this instead ends everything at once, and leaves the Lease to expire.
    pub async fn run_until(self, stop: impl Future<Output = ()>) -> Result<(), ManagerError> {
        let told = self.state().told.take();
        if let Some(told) = told {
            told(self.outline());
            return Ok(());
        }
        let Started { mut groups, election, later } = self.start().await?;
        let inner = &self.inner;
        let election_stop = CancellationToken::new();
        let mut contest = Contest::begin(election, election_stop.clone());
        let mut later = Some(later);
        let mut stop = std::pin::pin!(stop);
        let failure = loop {
            tokio::select! {
                biased;
                () = &mut stop => break None,
                failure = groups.failure() => break Some(failure),
                standing = contest.next(later.is_some()) => match standing {
                    Standing::Leads => {
                        inner.elected.send_modify(|elected| *elected = true);
                        for start in later.take().into_iter().flatten() {
                            start(&mut groups.leading);
                        }
                    }
                    Standing::Lost => break Some(ManagerError::LeadershipLost),
                },
            }
        };
        match &failure {
            None => info!("stopping"),
            Some(failure) => error!(error = %crate::error::Chain(failure), "stopping"),
        }
        let ended = match failure {
            // Who no longer leads must not finish what it began.
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
        contest.end().await;
        ended
    }

    /// Binds what listens, and starts what runs on every replica.
    async fn start(&self) -> Result<Started, ManagerError> {
        let inner = &self.inner;
        let (controllers, tasks, broadcaster, election, mut rng) = {
            let mut state = self.state();
            let broadcaster = state.broadcaster.take().ok_or(ManagerError::RanBefore)?;
            state.running = true;
            let rng = state.rng.fork();
            (
                std::mem::take(&mut state.controllers),
                std::mem::take(&mut state.tasks),
                broadcaster,
                state.election.take(),
                rng,
            )
        };
        // All watches begin now, so that a replica that comes to lead knows everything already; and before anybody
        // can ask whether they are synced.
        for source in controllers.iter().flat_map(|controller| &controller.sources) {
            source.informer(&inner.cache);
        }
        let mut groups = Groups::default();
        self.serve(&mut groups.servers).await?;
        let (kube, stop) = (self.events_client(election.is_some()), groups.events.stop.clone());
        // With the servers, which end last: it tells of the others to their end.
        let journal = inner.options.journal.map(|address| {
            let (journal, writer) = Journal::new(address, inner.options.clock.clone());
            let names = controllers.iter().map(|controller| controller.name.to_string()).collect();
            let written = writer.run(inner.options.name.clone(), names, groups.servers.stop.clone());
            groups.servers.spawn("journal", written.map(Ok));
            journal
        });
        groups.events.spawn("events", async move {
            broadcaster.run(kube, stop.cancelled()).await;
            Ok(())
        });
        let (cache, kube, stop) = (inner.cache.clone(), inner.kube.clone(), groups.cache.stop.clone());
        groups.cache.spawn("cache", async move {
            cache.run(kube, stop).await;
            Ok(())
        });
        let mut later: Vec<Start> = Vec::new();
        for controller in controllers {
            let needs_leader = controller.options.needs_leader;
            let around = Surroundings {
                client: self.client_for(needs_leader),
                cache: inner.cache.clone(),
                recorder: inner.recorder.clone(),
                clock: inner.options.clock.clone(),
                queue_metrics: inner.queue_metrics.clone(),
                metrics: inner.controller_metrics.clone(),
                journal: journal.clone(),
                rng: rng.fork(),
            };
            let start: Start = Box::new(move |group: &mut Group| {
                let stop = group.stop.clone();
                let name = format!("controller {}", controller.name);
                group.spawn(&name, async move { Ok(controller.run(around, stop).await?) });
            });
            if needs_leader { later.push(start) } else { start(&mut groups.always) }
        }
        for task in tasks {
            let client = self.client_for(task.needs_leader);
            let Task { name, needs_leader, start: run } = task;
            let start: Start = Box::new(move |group: &mut Group| {
                let cx = TaskContext { client, stop: group.stop.clone() };
                group.spawn(&name.clone(), async move {
                    run(cx).await.map_err(|failure| ManagerError::Task { name, failure })
                });
            });
            if needs_leader { later.push(start) } else { start(&mut groups.always) }
        }
        Ok(Started { groups, election, later })
    }

    fn client_for(&self, needs_leader: bool) -> Client {
        let client = &self.inner.client;
        if needs_leader { client.fenced(self.inner.fence.clone()) } else { client.clone() }
    }

    /// What events are written with. A replica that led is not heard of any more once it does not.
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

    async fn serve(&self, servers: &mut Group) -> Result<(), ManagerError> {
        let Inner { options, healthz, readyz, addresses, .. } = &*self.inner;
        let health = Server::bind(&options.health_probe_bind_address, "--health-probe-bind-address").await?;
        let metrics = Server::bind(&options.metrics_bind_address, "--metrics-bind-address").await?;
        let listening = Addresses {
            health_probe: health.as_ref().map(Server::address),
            metrics: metrics.as_ref().map(Server::address),
        };
        addresses.send_modify(|addresses| *addresses = Some(listening));
        if let Some(server) = health {
            info!(address = %server.address(), "serving health probes");
            let (handler, stop) = (health::handler(healthz.clone(), readyz.clone()), servers.stop.clone());
            servers.spawn("health probes", async move {
                server.run(handler, stop.cancelled_owned()).await;
                Ok(())
            });
        }
        let Some(mut server) = metrics else { return Ok(()) };
        info!(address = %server.address(), secure = options.metrics_secure, "serving metrics");
        let mut guard = None;
        if options.metrics_secure {
            let certificates = match &options.metrics_cert_path {
                Some(folder) => Certificates::from_files(
                    folder.join(&options.metrics_cert_name),
                    folder.join(&options.metrics_cert_key),
                )?,
                None => Certificates::self_signed(&["localhost"], &*options.clock)?,
            };
            let counted = options.metrics.with_registry(CertificateMetrics::register);
            server = server.with_tls(certificates.with_metrics(counted));
            guard = Some(Guard::new(self.inner.kube.clone()));
        }
        let (handler, stop) = (options.metrics.handler(guard), servers.stop.clone());
        servers.spawn("metrics", async move {
            server.run(handler, stop.cancelled_owned()).await;
            Ok(())
        });
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type Start = Box<dyn FnOnce(&mut Group) + Send>;

struct Started {
    groups: Groups,
    election: Option<Election>,
    /// What begins once this replica leads.
    later: Vec<Start>,
}

fn hostname() -> String {
    std::env::var("HOSTNAME")
        .ok()
        .or_else(|| {
            std::fs::read_to_string("/proc/sys/kernel/hostname").ok().map(|name| name.trim().to_owned())
        })
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "localhost".to_owned())
}
