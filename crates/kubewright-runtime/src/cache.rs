//! The shared cache that controllers read from. Watches keep it up to date.
//!
//! There is one [`Informer`] per kind and selection. It is created on first use and shared by all users. Objects are
//! stored as JSON and decoded when they are read ([`Entry`]); typed, dynamic and metadata readers of one kind share
//! one watch.
//!
//! - Reads never wait for the network and do not copy objects.
//! - Reading a kind that is not watched, not listed yet, or whose informer has stopped is an error, never an empty
//!   result.
//! - Followers get each change with the old and the new object. Objects that disappeared while a watch was down are
//!   reported as deleted. [`Removal`] is the reason.
//! - A slow follower delays neither the watch nor the other followers.
//! - An informer tracks the resourceVersion that its watch has reached, so that a controller can wait for its own
//!   writes.
//! - A panic in an index function or a transform affects only one object.

mod declared;
mod entry;
mod follower;
mod health;
mod hot;
mod inbox;
mod index;
mod informer;
mod metrics;
mod options;
mod reflector;
mod store;
mod unstarted;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use futures_util::FutureExt as _;
use prometheus_client::registry::Registry;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::error;

pub(crate) use self::declared::Declaration;
use self::declared::Declared;
pub use self::entry::{Entry, Marks};
pub use self::follower::Follower;
use self::health::Failure;
pub use self::health::WATCH_FAILURE;
pub use self::index::Index;
use self::informer::Common;
pub use self::informer::{Informer, Observer};
pub(crate) use self::metrics::Caches;
pub use self::options::{
    CacheOptions, CacheOptionsError, DECODED_BUDGET, KindOptions, NamespaceOptions, RESYNC,
};
use self::reflector::Selection;
pub use self::store::{Change, Occasion, Removal};
use crate::client::Error;
use crate::panics::{Panic, contain_future};
use crate::{Gvk, Key, Kind, ListOptions, Object};

/// The shared cache. Cheap to clone.
#[derive(Clone)]
pub struct Cache {
    inner: Arc<Inner>,
}

struct Inner {
    options: CacheOptions,
    common: Arc<Common>,
    informers: Mutex<BTreeMap<Id, Running>>,
    /// The kinds that registered controllers watch once the cache starts.
    declared: Mutex<Declared>,
    /// The informers that were registered when the cache started.
    initial: OnceLock<Vec<Arc<Informer>>>,
    starts: mpsc::UnboundedSender<Running>,
    /// Informers to start. [`Cache::run`] takes the queue.
    queue: Mutex<Option<Queue>>,
    /// The caches whose reads this one serves in a single reconcile.
    replaced: Mutex<Vec<Arc<Common>>>,
}

type Queue = mpsc::UnboundedReceiver<Running>;

#[derive(Clone)]
struct Running {
    informer: Arc<Informer>,
    cancel: CancellationToken,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Id {
    kind: Kind,
    /// The selectors that the caller requested.
    requested: Selection,
}

impl Cache {
    /// Creates a cache that watches nothing yet.
    pub fn new(options: CacheOptions) -> Result<Self, CacheOptionsError> {
        options.check()?;
        let (starts, queue) = mpsc::unbounded_channel();
        let inner = Inner {
            common: Arc::new(Common::new(options.decoded_budget)),
            options,
            informers: Mutex::default(),
            declared: Mutex::default(),
            initial: OnceLock::new(),
            starts,
            queue: Mutex::new(Some(queue)),
            replaced: Mutex::default(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Registers the metrics of this cache. Register only one cache in a registry.
    pub fn register_metrics(&self, registry: &mut Registry) {
        let caches = Caches::default();
        caches.add(None, self);
        registry.register_collector(Box::new(caches));
    }

    /// The informer of a type. The first call creates it.
    pub fn informer<K: Object>(&self) -> Arc<Informer> {
        self.informer_of(&Kind::of::<K>(), K::metadata_api())
    }

    /// The informer of a kind, either of whole objects or of metadata only.
    pub fn informer_of(&self, kind: &Kind, metadata_only: bool) -> Arc<Informer> {
        self.select(kind, "", "", metadata_only)
    }

    /// The informer of the objects that match both these selectors and those of the cache options.
    pub(crate) fn select(
        &self,
        kind: &Kind,
        labels: &str,
        fields: &str,
        metadata_only: bool,
    ) -> Arc<Informer> {
        let requested = self.inner.options.requested(kind, labels, fields, metadata_only);
        self.informer_by(Id { kind: kind.clone(), requested })
    }

    fn informer_by(&self, id: Id) -> Arc<Informer> {
        let mut informers = self.informers();
        if let Some(running) = informers.get(&id) {
            return running.informer.clone();
        }
        let settings = self.inner.options.settings(&id.kind, &id.requested);
        let informer = Arc::new(Informer::new(id.kind.clone(), settings, self.inner.common.clone()));
        let running = Running { informer: informer.clone(), cancel: CancellationToken::new() };
        informers.insert(id, running.clone());
        drop(informers);
        // The cache has stopped. Without this, callers would wait forever for the first list.
        if self.inner.starts.send(running).is_err() {
            informer.stop();
        }
        informer
    }

    /// The informer that serves reads of a kind, if one exists. Reads never create an informer.
    pub fn watching(&self, kind: &Kind, metadata_only: bool) -> Option<Arc<Informer>> {
        let id = |metadata_only| Id {
            kind: kind.clone(),
            requested: Selection { metadata_only, ..Selection::default() },
        };
        let informers = self.informers();
        let mut found = informers.get(&id(false));
        if metadata_only && found.is_none() {
            found = informers.get(&id(true));
        }
        found.map(|running| running.informer.clone())
    }

    /// The JSON size of the objects that are kept decoded within [`CacheOptions::decoded_budget`], in bytes.
    pub fn decoded_bytes(&self) -> usize {
        self.inner.common.hot.bytes()
    }

    /// Calls a function with every object as the server sent it, and its key and version. The first call counts. It
    /// delays the watch, so it must be fast.
    #[doc(hidden)]
    pub fn observe(&self, observer: Observer) {
        // The first call counts.
        let _ = self.inner.common.observer.set(observer);
    }

    /// All informers, ordered by kind.
    #[doc(hidden)]
    pub fn all(&self) -> Vec<Arc<Informer>> {
        self.informers().values().map(|running| running.informer.clone()).collect()
    }

    /// The informer that serves reads of a type. Fails if there is none.
    fn read<K: Object>(&self) -> Result<Arc<Informer>, Error> {
        if let Some(cache) = self.replacement() {
            return cache.read::<K>();
        }
        let kind = Kind::of::<K>();
        self.watching(&kind, K::metadata_api()).ok_or_else(|| {
            let kind = kind.gvk().to_string();
            // Controllers register the kinds they watch when the cache starts.
            if *self.inner.common.started.borrow() {
                Error::NotCached(kind)
            } else {
                Error::CacheNotStarted(kind)
            }
        })
    }

    /// All informers of a kind, in any version and with any selection. A write in one version is an event in all of
    /// them.
    pub(crate) fn all_of(&self, kind: &Kind) -> Vec<Arc<Informer>> {
        let Gvk { group, kind, .. } = kind.gvk();
        let informers = self.informers();
        let of_kind = informers.iter().filter(|(id, _)| {
            let watched = id.kind.gvk();
            (&watched.group, &watched.kind) == (group, kind)
        });
        of_kind.map(|(_, running)| running.informer.clone()).collect()
    }

    /// Stops watching a type and drops its objects and indexes. Its followers end.
    pub fn remove<K: Object>(&self) {
        self.remove_kind(&Kind::of::<K>(), K::metadata_api());
    }

    /// Like [`Cache::remove`], for a kind that is known only at run time: stops the watches of whole objects, or those of
    /// metadata only.
    ///
    /// Call it when the CRD of a kind is uninstalled, after the controllers of the kind were removed. Otherwise the watch
    /// keeps failing, which makes the manager not ready.
    pub fn remove_kind(&self, kind: &Kind, metadata_only: bool) {
        self.informers().retain(|id, running| {
            let keep = id.kind != *kind || id.requested.metadata_only != metadata_only;
            if !keep {
                running.cancel.cancel();
                running.informer.stop();
            }
            keep
        });
    }

    /// Gets one object, or `None` if it does not exist. Never waits: fails if the type is not watched, its first list
    /// is not complete, or its informer has stopped.
    pub fn get<K: Object>(&self, key: &Key) -> Result<Option<Arc<K>>, Error> {
        let informer = self.read::<K>()?;
        informer.get(key)?.map(|entry| informer.decode(&entry)).transpose()
    }

    /// Lists the objects of a type. Never waits: fails if the type is not watched, its first list is not complete, or
    /// its informer has stopped.
    pub fn list<K: Object>(&self, list: &ListOptions) -> Result<Vec<Arc<K>>, Error> {
        let informer = self.read::<K>()?;
        informer.entries(list)?.iter().map(|entry| informer.decode(entry)).collect()
    }

    /// Waits until the cache has started and the first list of every informer is complete.
    pub async fn synced(&self) -> Result<(), Error> {
        // The sender lives in `self`, so the channel is not closed.
        let _ = self.inner.common.started.subscribe().wait_for(|started| *started).await;
        for informer in self.all().into_iter().filter(|informer| !informer.is_missing()) {
            informer.synced().await?;
        }
        Ok(())
    }

    /// The informers that were registered when the cache started and have not been removed.
    pub(crate) fn initial(&self) -> Vec<Arc<Informer>> {
        let informers = self.informers();
        let registered =
            |it: &&Arc<Informer>| informers.values().any(|running| Arc::ptr_eq(&running.informer, it));
        self.inner.initial.get().into_iter().flatten().filter(registered).cloned().collect()
    }

    /// The kinds whose first list is not complete.
    pub fn unsynced(&self) -> Vec<Gvk> {
        self.kinds(|informer| !informer.is_synced() && !informer.is_missing())
    }

    /// Checks that all watched kinds are synced and their watches work; otherwise returns the reasons. This is the
    /// manager's readiness check `informer-sync`.
    ///
    /// It fails if an informer has stopped, if a first list is not complete, if a list or watch is forbidden, or if a
    /// list or watch has been failing for longer than [`WATCH_FAILURE`].
    pub fn health(&self) -> Result<(), String> {
        let named = |what: &str, kinds: Vec<Gvk>| {
            let kinds: Vec<String> = kinds.iter().map(ToString::to_string).collect();
            (!kinds.is_empty()).then(|| format!("{what}: {}", kinds.join("; ")))
        };
        let reasons = [
            named("informer has stopped", self.kinds(Informer::is_stopped)),
            named("not listed yet", self.kinds(|it| !it.is_stopped() && !it.is_synced() && !it.is_missing())),
        ];
        let reasons: Vec<String> = reasons.into_iter().flatten().chain(self.failing()).collect();
        if reasons.is_empty() { Ok(()) } else { Err(reasons.join("; ")) }
    }

    /// The watches that have been failing for too long, with their errors.
    fn failing(&self) -> Vec<String> {
        let all = self.all();
        let parts = all
            .iter()
            .filter(|it| !it.is_stopped() && !it.is_missing())
            .flat_map(|it| it.parts().iter().map(move |part| (it, part)));
        let failing = parts.filter_map(|(informer, part)| {
            let failure = part.health.failure().filter(Failure::is_serious)?;
            let place = part.namespace().map(|it| format!(" in namespace {it}")).unwrap_or_default();
            let (kind, since) = (informer.kind().gvk(), failure.since.elapsed().as_secs());
            Some(format!("watch of {kind}{place} has failed for {since}s: {}", failure.reason))
        });
        failing.collect()
    }

    fn kinds(&self, matches: impl Fn(&Informer) -> bool) -> Vec<Gvk> {
        let informers = self.informers();
        let matching = informers.values().filter(|running| matches(&running.informer));
        matching.map(|running| running.informer.kind().gvk().clone()).collect()
    }

    /// Starts the cache. The future runs all watches until it is cancelled or dropped; then every informer stops.
    ///
    /// # Panics
    ///
    /// If it is called twice.
    pub fn run(
        &self,
        client: kube::Client,
        cancel: CancellationToken,
    ) -> impl Future<Output = ()> + Send + use<> {
        let queue = self.inner.queue.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut run = Run { cache: self.clone(), queue: queue.expect("Cache::run is called once") };
        let initial = self.informers().values().map(|running| running.informer.clone()).collect();
        let _ = self.inner.initial.set(initial);
        self.inner.common.started.send_modify(|started| *started = true);
        let mut rng = self.inner.options.seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed);
        async move {
            let mut watches = JoinSet::new();
            loop {
                tokio::select! {
                    biased;
                    () = cancel.cancelled() => break,
                    Some(Running { informer, cancel }) = run.queue.recv() => {
                        watches.spawn(follow(informer, client.clone(), rng.fork(), cancel).boxed());
                    }
                    Some(_) = watches.join_next() => {}
                }
            }
            watches.shutdown().await;
        }
    }

    fn informers(&self) -> MutexGuard<'_, BTreeMap<Id, Running>> {
        self.inner.informers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs an informer until it is cancelled.
async fn follow(
    informer: Arc<Informer>,
    client: kube::Client,
    rng: fastrand::Rng,
    cancel: CancellationToken,
) {
    let stop = Stop(informer);
    let run = contain_future(cancel.run_until_cancelled(stop.0.run(&client, rng)));
    let kind = stop.0.kind().gvk();
    match run.await {
        Ok(None) => {}
        Ok(Some(())) => error!(%kind, "Informer stopped; reads of this kind now fail"),
        Err(Panic { message, at, times }) => {
            error!(%kind, panic = message, at, times, "Informer panicked; reads of this kind now fail");
        }
    }
}

/// A running cache. Dropping it stops all informers, so that no caller waits forever.
struct Run {
    cache: Cache,
    queue: Queue,
}

impl Drop for Run {
    fn drop(&mut self) {
        // Close the queue first: an informer created from now on is stopped by its creator, because it cannot be
        // queued.
        self.queue.close();
        for running in self.cache.informers().values() {
            running.informer.stop();
        }
    }
}

/// Stops an informer when its task ends for any reason.
struct Stop(Arc<Informer>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.stop();
    }
}
