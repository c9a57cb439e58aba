//! Runs a controller: sources fill the queue, workers process it.
//!
//! Invariants: no worker starts before every source has queued its initial objects; a key is never reconciled
//! concurrently with itself; a key waits until the cache has seen the writes of its last reconcile; a panic or a
//! timeout affects only one reconcile.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use kube::api::DynamicObject;
use kubewright_sync::ordered_watch;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, Level, debug, enabled, error, field, info, info_span, warn};

use super::cause::{Cause, Trigger};
use super::forwarder::{EventForwarder, ForwarderEnd, forward_channel};
use super::metrics::{ControllerMetrics, Counts};
use super::requests::Requests;
use super::source::{ChannelSource, KindSource, Role};
use super::{AddedSource, ControllerError, ControllerOptions, Predicate};
use crate::cache::{Cache, Informer};
use crate::client::Client;
use crate::client::write_tracker::{Pending, WriteTracker};
use crate::events::Recorder;
use crate::journal::{self, Ending, Journal, Reconciles};
use crate::panics::{self, Panic};
use crate::queue::{Causes, QueueMetrics, SharedQueue, Taken, jittered};
use crate::reconcile::{
    Context, ContextParts, Error, Next, Outcome, ReconcileId, is_conflict, is_terminal, policy_outcome,
};
use crate::{Clock, Key, Kind, traces};

/// How long a key waits for the cache to see its own writes. Then it is reconciled anyway.
const OWN_WRITES: Duration = Duration::from_secs(10);

/// A type-erased reconciler.
pub(crate) trait Reconcile: Send + Sync {
    fn run<'a>(&'a self, key: &'a Key, cx: &'a Context) -> BoxFuture<'a, Result<Outcome, Error>>;
}

/// A type-erased controller.
pub(crate) struct Controller {
    pub(crate) name: Arc<str>,
    pub(crate) kind: Option<Kind>,
    pub(crate) reconciler: Arc<dyn Reconcile>,
    pub(crate) sources: Vec<KindSource>,
    pub(crate) channels: Vec<ChannelSource>,
    /// Sources that are added after the registration.
    pub(crate) later: mpsc::UnboundedReceiver<AddedSource>,
    /// The filters of the events of all sources.
    pub(crate) filters: Arc<[Predicate<DynamicObject>]>,
    /// The finalizers that the reconciler adds.
    pub(crate) finalizers: Vec<String>,
    pub(crate) without_status: bool,
    pub(crate) without_events: bool,
    pub(crate) options: ControllerOptions,
}

/// The dependencies of a controller, provided by its manager.
pub(crate) struct ControllerDeps {
    pub(crate) client: Client,
    pub(crate) cache: Cache,
    pub(crate) recorder: Recorder,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) queue_metrics: QueueMetrics,
    pub(crate) metrics: ControllerMetrics,
    pub(crate) journal: Option<Journal>,
    pub(crate) rng: fastrand::Rng,
    /// Set for a controller with warmup: whether this replica is the leader.
    pub(crate) elected: Option<ordered_watch::Receiver<bool>>,
}

impl Controller {
    /// Runs until cancelled. Then it waits for running reconciles and drops the queue.
    pub(crate) async fn run(
        mut self,
        deps: ControllerDeps,
        cancel: CancellationToken,
    ) -> Result<(), ControllerError> {
        let mut rng = deps.rng.clone();
        let mut options = self.options.queue.clone();
        if options.jitter > 0.0 {
            options.seed = rng.u64(..);
        }
        let queue = deps.queue_metrics.queue(&self.name, options);
        let requests = Requests::new(queue.clone());
        // Register the metrics now, so that dashboards show zeros during the first lists.
        let counts = deps.metrics.of(&self.name, self.options.concurrency.max(1));
        let mut forwarders = JoinSet::new();
        let informer =
            self.sources.first().filter(|_| self.kind.is_some()).map(|it| it.informer(&deps.cache));
        let owned = self.sources.iter().filter(|source| source.role == Role::Owned);
        let owned = owned.map(|source| source.informer(&deps.cache)).collect();
        let others: Vec<Cache> =
            self.sources.iter().filter_map(|source| source.other_cache().cloned()).collect();
        let required: Arc<[Arc<Informer>]> = self
            .sources
            .iter()
            .filter(|source| !source.optional)
            .map(|source| source.informer(&deps.cache))
            .collect();
        let queued = self.follow(&deps, &required, &requests, &mut forwarders);
        info!(
            controller = &*self.name,
            controller_group = self.group(),
            controller_kind = self.kind.as_ref().map(Kind::name),
            "Starting Controller",
        );
        tokio::select! {
            biased;
            () = cancel.cancelled() => return Ok(()),
            synced = self.synced(&deps.cache, &others, &required, queued) => synced?,
        }
        if let Some(mut elected) = deps.elected {
            tokio::select! {
                biased;
                () = cancel.cancelled() => return Ok(()),
                // The sender lives as long as the manager runs.
                _ = elected.wait_for(|elected| *elected) => {}
            }
        }
        info!(
            controller = &*self.name,
            controller_group = self.group(),
            controller_kind = self.kind.as_ref().map(Kind::name),
            "worker count" = self.options.concurrency.max(1),
            "Starting workers",
        );

        let (cache, journal, filters) = (deps.cache.clone(), deps.journal.clone(), self.filters.clone());
        let shared = Arc::new(Shared {
            counts,
            name: self.name.clone(),
            journal: deps
                .journal
                .map(|journal| Reconciles::new(journal, self.name.clone(), self.kind.clone())),
            kind: self.kind,
            informer,
            owned,
            reconciler: self.reconciler,
            timeout: self.options.timeout,
            client: deps.client,
            recorder: deps.recorder,
            clock: deps.clock,
            cancel: cancel.clone(),
            queue: queue.clone(),
            requests,
            requeue_jitter: self.options.requeue_jitter,
        });
        let mut workers = JoinSet::new();
        for _ in 0..self.options.concurrency.max(1) {
            let (shared, rng) = (shared.clone(), rng.fork());
            workers.spawn(async move { shared.work(rng).await });
        }
        let reported = shared.journal_queue();
        let mut reported = std::pin::pin!(reported);
        loop {
            tokio::select! {
                biased;
                () = cancel.cancelled() => break,
                Some(AddedSource { source, cancel }) = self.later.recv() => {
                    let forwarder = EventForwarder::new(
                        shared.name.clone(),
                        source,
                        &cache,
                        required.clone(),
                        &shared.requests,
                        filters.clone(),
                        journal.as_ref(),
                    );
                    forwarders.spawn(async move {
                        let run = cancel.run_until_cancelled(forwarder.run(ordered_watch::Sender::new(false)));
                        run.await.unwrap_or(ForwarderEnd::Removed)
                    });
                }
                // A source ends when it is removed or its cache stops. The last one ends the controller.
                Some(ended) = forwarders.join_next() => {
                    if forwarders.is_empty() && !matches!(ended, Ok(ForwarderEnd::Removed)) {
                        break;
                    }
                }
                () = &mut reported, if shared.journal.is_some() => {}
            }
        }
        if cancel.is_cancelled() {
            info!(controller = &*self.name, "Shutdown signal received, waiting for all workers to finish");
        }
        queue.close();
        forwarders.shutdown().await;
        while let Some(worker) = workers.join_next().await {
            if let Err(error) = worker {
                error!(controller = &*self.name, %error, "Worker panicked");
            }
        }
        info!(controller = &*self.name, "All workers finished");
        Ok(())
    }

    /// The API group of the reconciled kind.
    fn group(&self) -> Option<&str> {
        self.kind.as_ref().map(|kind| &*kind.gvk().group)
    }

    /// Starts the forwarders of the sources. Each reports when its initial objects are queued.
    fn follow(
        &mut self,
        deps: &ControllerDeps,
        required: &Arc<[Arc<Informer>]>,
        requests: &Requests,
        forwarders: &mut JoinSet<ForwarderEnd>,
    ) -> Vec<(Arc<Informer>, ordered_watch::Receiver<bool>)> {
        let (group, kind) = (self.group().map(str::to_owned), self.kind.clone());
        let starting = |source: &dyn fmt::Display| {
            info!(
                controller = &*self.name,
                controller_group = group,
                controller_kind = kind.as_ref().map(Kind::name),
                %source,
                "Starting EventSource",
            );
        };
        for channel in self.channels.drain(..) {
            starting(&"channel source");
            forwarders.spawn(forward_channel(channel, requests.clone()));
        }
        let filters = self.filters.clone();
        let sources =
            self.sources.drain(..).filter(|source| source.role != Role::Read).filter_map(|source| {
                let (informer, optional) = (source.informer(&deps.cache), source.optional);
                starting(&format_args!("kind source: {}", source.kind.gvk()));
                let (queued, receiver) = ordered_watch::channel(false);
                let forwarder = EventForwarder::new(
                    self.name.clone(),
                    source,
                    &deps.cache,
                    required.clone(),
                    requests,
                    filters.clone(),
                    deps.journal.as_ref(),
                );
                forwarders.spawn(forwarder.run(queued));
                (!optional).then_some((informer, receiver))
            });
        sources.collect()
    }

    /// Waits until every kind of this controller and every initially registered kind is listed, and every source has
    /// queued its objects.
    async fn synced(
        &self,
        cache: &Cache,
        others: &[Cache],
        required: &[Arc<Informer>],
        sources: Vec<(Arc<Informer>, ordered_watch::Receiver<bool>)>,
    ) -> Result<(), ControllerError> {
        let (controller, after) = (|| self.name.to_string(), self.options.sync_timeout);
        let deadline = Instant::now() + after;
        let initial = others.iter().chain([cache]).flat_map(Cache::initial);
        let awaited: Vec<_> = initial.chain(required.iter().cloned()).collect();
        let listed = awaited.iter().map(|it| (it, it.synced().map(|it| it.is_ok()).boxed()));
        let queued = sources.into_iter().map(|(informer, mut queued)| {
            let queued = async move { queued.wait_for(|queued| *queued).await.is_ok() };
            (informer, queued.boxed())
        });
        for (informer, listed) in listed.map(|(it, listed)| (it.clone(), listed)).chain(queued) {
            let kind = informer.kind().gvk().clone();
            match tokio::time::timeout_at(deadline, listed).await {
                Ok(true) => {}
                Ok(false) => return Err(ControllerError::Stopped { controller: controller(), kind }),
                Err(_) => return Err(ControllerError::NotSynced { controller: controller(), kind, after }),
            }
        }
        Ok(())
    }
}

/// State shared by the workers of a controller.
struct Shared {
    name: Arc<str>,
    kind: Option<Kind>,
    /// The informer of the reconciled objects.
    informer: Option<Arc<Informer>>,
    /// The informers of the owned objects.
    owned: Arc<[Arc<Informer>]>,
    reconciler: Arc<dyn Reconcile>,
    journal: Option<Reconciles>,
    timeout: Option<Duration>,
    client: Client,
    recorder: Recorder,
    clock: Arc<dyn Clock>,
    cancel: CancellationToken,
    counts: Counts,
    queue: SharedQueue<Key, Cause>,
    requests: Requests,
    requeue_jitter: f64,
}

/// How a reconcile ended.
enum End {
    Outcome(Outcome),
    Failed(Error),
    Panicked(Panic),
    TimedOut,
}

impl End {
    fn is_failure(&self) -> bool {
        matches!(
            self,
            Self::Outcome(Outcome { next: Next::Terminal, .. })
                | Self::Failed(_)
                | Self::Panicked(_)
                | Self::TimedOut
        )
    }

    /// The outcome and the error for the journal.
    fn journaled(&self) -> (Ending, Option<String>) {
        match self {
            Self::Outcome(outcome) => match outcome.next {
                Next::Done => (Ending::Done, None),
                Next::After(_) => (Ending::Requeue, None),
                Next::Backoff => (Ending::Backoff, None),
                Next::Terminal => (Ending::Terminal, None),
            },
            Self::Failed(error) if is_terminal(error) => (Ending::Terminal, Some(format!("{error:#}"))),
            Self::Failed(error) => (Ending::Error, Some(format!("{error:#}"))),
            Self::Panicked(panic) => (Ending::Panic, Some(panic.to_string())),
            Self::TimedOut => (Ending::Timeout, None),
        }
    }
}

impl Shared {
    async fn work(self: Arc<Self>, mut rng: fastrand::Rng) {
        let mut waits = JoinSet::new();
        loop {
            // Yield, so that a reconcile that never waits does not starve other tasks such as health checks.
            tokio::task::coop::consume_budget().await;
            let Some(taken) = self.queue.take().await else { return };
            while waits.try_join_next().is_some() {}
            match self.requests.take_pending(&taken.item) {
                None => self.reconcile(taken, ReconcileId(rng.u128(..)), &mut rng).await,
                Some(pending) => {
                    let (shared, key) = (self.clone(), taken.item.clone());
                    self.queue.hold(taken);
                    waits.spawn(async move { shared.wait(key, pending).await });
                }
            }
        }
    }

    async fn wait(&self, key: Key, writes: Vec<Pending>) {
        let mut pending = Vec::new();
        // Without a timeout: while the server does not respond, a reconcile could not write either.
        for write in writes {
            pending.extend(write.pending().await);
        }
        let all = async {
            for write in pending {
                write.seen().await;
            }
        };
        if tokio::time::timeout(OWN_WRITES, all).await.is_err() {
            warn!(
                controller = &*self.name,
                object = %key,
                "Timed out waiting for the cache to observe this controller's writes; reconciling anyway",
            );
        }
        self.queue.release(&key);
    }

    async fn reconcile(&self, taken: Taken<Key, Cause>, id: ReconcileId, rng: &mut fastrand::Rng) {
        let key = taken.item.clone();
        let span = info_span!(
            "reconcile",
            controller = &*self.name,
            controller_group = self.kind.as_ref().map(|kind| &*kind.gvk().group),
            controller_kind = self.kind.as_ref().map(Kind::name),
            object = %key,
            reconcile_id = %id,
            because = field::Empty,
        );
        traces::reconciles(&span, &key);
        let because = |causes: &Causes<Cause>| {
            span.record("because", field::display(causes));
        };
        // Record the causes now if every reconcile is logged, otherwise only if it fails.
        let at_once = each_is_logged();
        if at_once {
            because(&taken.causes);
            span.in_scope(|| debug!("Reconciling"));
        }
        let trail = self.journal.as_ref().and_then(|journal| {
            journal.queue(|| self.depth());
            journal.started(id, &taken)
        });
        let writes = WriteTracker::new();
        self.requests.begin(&key, writes.clone());
        let removal = self.requests.take_removal(&key);
        let cx = Context::from(ContextParts {
            client: self.client.for_reconcile(writes.clone(), trail.clone()),
            key: taken.item,
            informer: self.informer.clone(),
            owned: self.owned.clone(),
            removal,
            id,
            controller: self.name.clone(),
            recorder: self.recorder.clone(),
            clock: self.clock.clone(),
            cancel: self.cancel.clone(),
            causes: taken.causes,
            retries: taken.retries,
        });
        let started = Instant::now();
        self.counts.active.inc();
        let end = cx.client().run_reconcile(self.contained(&key, &cx)).instrument(span.clone()).await;
        self.counts.active.dec();
        self.counts.time.observe(started.elapsed().as_secs_f64());
        self.requests.put_pending(&key, writes.unseen());
        if !at_once && end.is_failure() {
            because(cx.causes());
        }
        if let (Some(removal), true) = (removal, end.is_failure()) {
            self.requests.put_removal(&key, removal);
        }
        let is_done = matches!(end, End::Outcome(Outcome { next: Next::Done, .. }));
        let again_in = if is_done {
            self.counts.success.inc();
            self.requests.settle(&key);
            None
        } else {
            span.in_scope(|| self.follow_up(&key, taken.priority, &end, rng))
        };
        traces::ended(&span, || end.journaled());
        if let Some(trail) = trail {
            let (ending, error) = end.journaled();
            trail.ended(ending, again_in, error);
        }
        if is_done {
            self.queue.succeeded(&key);
        } else {
            self.queue.done(&key);
        }
        if let Some(journal) = &self.journal {
            journal.queue(|| self.depth());
        }
    }

    /// The number of waiting and of running keys.
    fn depth(&self) -> (usize, usize) {
        self.queue.inspect(|queue, _| (queue.len(), queue.running().count()))
    }

    /// Writes the queue depth to the journal periodically.
    async fn journal_queue(&self) {
        let Some(journal) = &self.journal else { return };
        loop {
            journal.queue(|| self.depth());
            tokio::time::sleep(journal::PAUSE).await;
        }
    }

    /// Runs the reconciler with timeout and panic containment.
    async fn contained(&self, key: &Key, cx: &Context) -> End {
        // Creating and dropping the future may panic as well.
        let run = panics::contain_future(async {
            let run = self.reconciler.run(key, cx);
            let result = match self.timeout {
                None => run.await,
                Some(timeout) => match tokio::time::timeout(timeout, run).await {
                    Ok(result) => result,
                    Err(_) => return End::TimedOut,
                },
            };
            result.map_or_else(End::Failed, End::Outcome)
        });
        run.await.unwrap_or_else(End::Panicked)
    }

    /// Counts and logs the result, queues the next run if there is one, and returns its delay. The key is still
    /// running, so the queue holds it until it is done.
    fn follow_up(&self, key: &Key, priority: i32, end: &End, rng: &mut fastrand::Rng) -> Option<Duration> {
        let counts = &self.counts;
        if let End::Failed(failure) = end
            && let Some(outcome) = policy_outcome(failure)
        {
            return self.follow_policy(key, priority, failure, outcome);
        }
        match end {
            End::Outcome(outcome) => {
                let priority = outcome.priority.unwrap_or(priority);
                match outcome.next {
                    Next::Done => None,
                    Next::After(time) => {
                        let time = jittered(time, self.requeue_jitter, rng);
                        counts.requeue_after.inc();
                        self.requests.settle(key);
                        self.queue.forget(key);
                        self.queue.add_after(key.clone(), priority, self.again(key, Trigger::Requeued), time);
                        Some(time)
                    }
                    Next::Backoff => {
                        counts.requeue.inc();
                        let pause = self.requests.retry(key, priority, self.again(key, Trigger::Requeued));
                        debug!(retry_in = ?pause, "Requeueing with backoff");
                        Some(pause)
                    }
                    Next::Terminal => {
                        error!(
                            error = "the reconciler returned a terminal outcome",
                            terminal = true,
                            "Reconciler error"
                        );
                        self.fail(key, priority)
                    }
                }
            }
            End::Failed(failure) if is_terminal(failure) => {
                error!(error = format!("{failure:#}"), terminal = true, "Reconciler error");
                self.fail(key, priority)
            }
            // Another client changed the object first. The retry reads the change from the cache.
            End::Failed(failure) if is_conflict(failure) => {
                let pause = self.retry(key, priority);
                info!(error = format!("{failure:#}"), retry_in = ?pause, "Requeueing after a conflict");
                Some(pause)
            }
            End::Failed(failure) => {
                let pause = self.retry(key, priority);
                error!(error = format!("{failure:#}"), retry_in = ?pause, "Reconciler error");
                Some(pause)
            }
            End::Panicked(Panic { message, at, times }) => {
                counts.panics.inc();
                let pause = self.retry(key, priority);
                let error = format!("panic: {message} [recovered]");
                error!(error, at, times, retry_in = ?pause, "Reconciler error");
                Some(pause)
            }
            End::TimedOut => {
                counts.timeouts.inc();
                let pause = self.retry(key, priority);
                error!(error = "reconcile timed out", timeout = ?self.timeout, retry_in = ?pause, "Reconciler error");
                Some(pause)
            }
        }
    }

    /// Follows the error policy of an adapted function.
    fn follow_policy(&self, key: &Key, priority: i32, failure: &Error, outcome: Outcome) -> Option<Duration> {
        let priority = outcome.priority.unwrap_or(priority);
        let pause = match outcome.next {
            Next::Done | Next::Terminal => {
                error!(error = format!("{failure:#}"), "Reconciler error; not retrying before a change");
                return self.fail(key, priority);
            }
            Next::Backoff => self.retry(key, priority),
            Next::After(time) => {
                self.counts.failed();
                self.requests.retry_after(key, priority, self.again(key, Trigger::Retried), time);
                time
            }
        };
        let error = format!("{failure:#}");
        if is_conflict(failure) {
            info!(error, retry_in = ?pause, "Requeueing after a conflict");
        } else {
            error!(error, retry_in = ?pause, "Reconciler error");
        }
        Some(pause)
    }

    fn retry(&self, key: &Key, priority: i32) -> Duration {
        self.counts.failed();
        self.requests.retry(key, priority, self.again(key, Trigger::Retried))
    }

    fn fail(&self, key: &Key, priority: i32) -> Option<Duration> {
        self.counts.failed();
        self.counts.terminal_errors.inc();
        self.requests.fail(key, priority, self.again(key, Trigger::Retried))
    }

    fn again(&self, key: &Key, trigger: Trigger) -> Cause {
        Cause::new(trigger, self.kind.clone(), key.clone())
    }
}

/// Whether every reconcile is logged.
pub(super) fn each_is_logged() -> bool {
    enabled!(Level::DEBUG)
}
