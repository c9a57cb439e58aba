//! The shared cache: what controllers read, kept up to date by watches.
//!
//! One [`Informer`] per kind and selection, started when somebody first asks for it and shared by everybody who
//! does. Objects are kept as JSON and decoded when they are read ([`Entry`]); typed, dynamic and metadata readers of
//! one kind share one watch.
//!
//! - Reads never wait for the network and copy no object.
//! - Followers are told old and new; what vanished while a watch was down is told as deleted.
//! - A slow follower holds up neither the watch nor the others.
//! - What was seen is never unseen: an informer tells how far it has come, so a controller can wait for its own writes.

mod entry;
mod follower;
mod inbox;
mod informer;
mod reflector;
mod store;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::error;

pub use self::entry::{Entry, Marks};
pub use self::follower::Follower;
pub use self::informer::Informer;
use self::informer::Settings;
pub(crate) use self::reflector::Selection;
pub use self::store::{Change, Occasion};
use crate::client::Error;
use crate::{Gvk, Key, Kind, List, Object};

/// How often everything is told again, unless said otherwise.
pub const RESYNC: Duration = Duration::from_hours(10);

/// The JSON of the objects that are kept decoded, per informer.
const HOT_BYTES: usize = 1 << 20;

/// What a cache keeps.
#[derive(Clone)]
pub struct CacheOptions {
    /// The namespaces to watch; none stands for all.
    pub namespaces: Vec<String>,
    /// How often every object is told again; never if none.
    pub resync: Option<Duration>,
    /// Kinds that are kept in another way.
    pub kinds: BTreeMap<Gvk, KindOptions>,
    /// Seed of the pauses between tries; by lot if none.
    pub seed: Option<u64>,
}

impl Default for CacheOptions {
    fn default() -> Self {
        Self { namespaces: Vec::new(), resync: Some(RESYNC), kinds: BTreeMap::new(), seed: None }
    }
}

impl CacheOptions {
    /// Keeps a kind in another way.
    #[must_use]
    pub fn kind<K: Object>(mut self, options: KindOptions) -> Self {
        self.kinds.insert(Kind::of::<K>().gvk().clone(), options);
        self
    }
}

/// How often the objects of a kind are told again.
#[derive(Clone, Copy, Default)]
enum Resync {
    /// As often as the cache says.
    #[default]
    AsAll,
    /// So often, or never.
    Own(Option<Duration>),
}

/// How one kind is kept.
#[derive(Clone, Default)]
pub struct KindOptions {
    namespaces: Option<Vec<String>>,
    labels: String,
    fields: String,
    keep_managed_fields: bool,
    resync: Resync,
    transform: Option<entry::Transform>,
    transforms_metadata: bool,
}

impl KindOptions {
    /// As every kind is kept.
    pub fn new() -> Self {
        Self::default()
    }

    /// Watches these namespaces, whatever the cache watches.
    #[must_use]
    pub fn namespaces<N: Into<String>>(mut self, namespaces: impl IntoIterator<Item = N>) -> Self {
        self.namespaces = Some(namespaces.into_iter().map(Into::into).collect());
        self
    }

    /// Keeps only objects whose labels are selected.
    #[must_use]
    pub fn labels(mut self, selector: impl Into<String>) -> Self {
        self.labels = selector.into();
        self
    }

    /// Keeps only objects whose fields are selected, such as `spec.nodeName=node-1`.
    #[must_use]
    pub fn fields(mut self, selector: impl Into<String>) -> Self {
        self.fields = selector.into();
        self
    }

    /// Keeps `metadata.managedFields`, which are dropped otherwise: nobody reads them, and they are large.
    #[must_use]
    pub fn keep_managed_fields(mut self) -> Self {
        self.keep_managed_fields = true;
        self
    }

    /// Tells every object again so often, or never.
    #[must_use]
    pub fn resync(mut self, every: Option<Duration>) -> Self {
        self.resync = Resync::Own(every);
        self
    }

    /// Changes every object before it is kept, for example to drop what nobody reads.
    ///
    /// Fields that `K` does not know are dropped as well. Where whole objects are changed, those of which only the
    /// metadata is kept are not, and the other way round.
    #[must_use]
    pub fn transform<K: Object>(mut self, change: impl Fn(&mut K) + Send + Sync + 'static) -> Self {
        self.transforms_metadata = K::metadata_api();
        self.transform = Some(Arc::new(move |json| {
            let mut object: K = serde_json::from_str(json)?;
            change(&mut object);
            serde_json::to_string(&object)
        }));
        self
    }
}

/// The shared cache. Cheap to clone.
#[derive(Clone)]
pub struct Cache {
    inner: Arc<Inner>,
}

struct Inner {
    options: CacheOptions,
    informers: Mutex<BTreeMap<Id, Running>>,
    starts: mpsc::UnboundedSender<Running>,
    /// What is to be run; taken by [`Cache::run`].
    started: Mutex<Option<Started>>,
}

type Started = mpsc::UnboundedReceiver<Running>;

#[derive(Clone)]
struct Running {
    informer: Arc<Informer>,
    cancel: CancellationToken,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Id {
    kind: Kind,
    selection: Selection,
}

impl Cache {
    /// A cache that watches nothing yet.
    pub fn new(options: CacheOptions) -> Self {
        let (starts, started) = mpsc::unbounded_channel();
        let informers = Mutex::default();
        Self { inner: Arc::new(Inner { options, informers, starts, started: Mutex::new(Some(started)) }) }
    }

    /// The informer of a type, which is started if this is the first call.
    pub fn informer<K: Object>(&self) -> Arc<Informer> {
        self.informer_of(&Kind::of::<K>(), K::metadata_api())
    }

    /// The informer of a kind, of whole objects or of their metadata alone.
    pub fn informer_of(&self, kind: &Kind, metadata_only: bool) -> Arc<Informer> {
        let options = self.inner.options.kinds.get(kind.gvk());
        let selection = Selection {
            labels: options.map(|it| it.labels.clone()).unwrap_or_default(),
            fields: options.map(|it| it.fields.clone()).unwrap_or_default(),
            metadata_only,
        };
        self.select(kind, selection)
    }

    /// The informer of a selection of a kind.
    pub(crate) fn select(&self, kind: &Kind, selection: Selection) -> Arc<Informer> {
        let mut informers = self.informers();
        let id = Id { kind: kind.clone(), selection };
        if let Some(running) = informers.get(&id) {
            return running.informer.clone();
        }
        let informer = Arc::new(Informer::new(kind.clone(), self.settings(kind, id.selection.clone())));
        let running = Running { informer: informer.clone(), cancel: CancellationToken::new() };
        informers.insert(id, running.clone());
        drop(informers);
        // If nobody runs the cache any more, the informer never syncs, and says so.
        if self.inner.starts.send(running).is_err() {
            informer.stop();
        }
        informer
    }

    fn settings(&self, kind: &Kind, selection: Selection) -> Settings {
        let Inner { options, .. } = &*self.inner;
        let own = options.kinds.get(kind.gvk()).cloned().unwrap_or_default();
        let mut namespaces = match kind.scope() {
            crate::Scope::Namespaced => own.namespaces.unwrap_or_else(|| options.namespaces.clone()),
            crate::Scope::Cluster => Vec::new(),
        };
        namespaces.sort();
        namespaces.dedup();
        if namespaces.iter().any(String::is_empty) {
            // As everywhere in Kubernetes, the empty name stands for all.
            namespaces.clear();
        }
        let metadata_only = selection.metadata_only;
        Settings {
            selection,
            namespaces,
            transform: own.transform.filter(|_| own.transforms_metadata == metadata_only),
            keep_managed_fields: own.keep_managed_fields,
            resync: match own.resync {
                Resync::AsAll => options.resync,
                Resync::Own(every) => every,
            },
            hot_bytes: HOT_BYTES,
        }
    }

    /// The informer that can answer for a kind, if one is there: reading starts none.
    pub fn watching(&self, kind: &Kind, metadata_only: bool) -> Option<Arc<Informer>> {
        let options = self.inner.options.kinds.get(kind.gvk());
        let mut id = Id {
            kind: kind.clone(),
            selection: Selection {
                labels: options.map(|it| it.labels.clone()).unwrap_or_default(),
                fields: options.map(|it| it.fields.clone()).unwrap_or_default(),
                metadata_only: false,
            },
        };
        let informers = self.informers();
        let whole = informers.get(&id);
        let found = if metadata_only && whole.is_none() {
            id.selection.metadata_only = true;
            informers.get(&id)
        } else {
            whole
        };
        found.map(|running| running.informer.clone())
    }

    /// Every informer of a kind, whatever it selects.
    pub(crate) fn all_of(&self, kind: &Kind) -> Vec<Arc<Informer>> {
        let informers = self.informers();
        let of_kind = informers.iter().filter(|(id, _)| id.kind == *kind);
        of_kind.map(|(_, running)| running.informer.clone()).collect()
    }

    /// Stops watching a type and forgets its objects and indexes. Controllers that follow it hear nothing more.
    pub fn remove<K: Object>(&self) {
        let kind = Kind::of::<K>();
        self.informers().retain(|id, running| {
            let keep = id.kind != kind || id.selection.metadata_only != K::metadata_api();
            if !keep {
                running.cancel.cancel();
                running.informer.stop();
            }
            keep
        });
    }

    /// Keeps objects findable by a field: `List::field(name, value)` then answers from the cache at once.
    ///
    /// `values` says under which values an object is found: none, one or several.
    pub fn index<K: Object>(&self, name: &str, values: impl Fn(&K) -> Vec<String> + Send + Sync + 'static) {
        let informer = self.informer::<K>();
        let reader = Arc::downgrade(&informer);
        let values = move |entry: &Entry| {
            // Decoded through the informer, so that whoever reads it next need not.
            let object = reader.upgrade().and_then(|informer| informer.decode::<K>(entry).ok());
            object.map(|object| values(&object)).unwrap_or_default()
        };
        informer.add_index(name, Arc::new(values));
    }

    /// One object, if its type is watched and it is there. Never waits.
    pub fn get<K: Object>(&self, key: &Key) -> Result<Option<Arc<K>>, Error> {
        let Some(informer) = self.watching(&Kind::of::<K>(), K::metadata_api()) else { return Ok(None) };
        informer.entry(key).map(|entry| informer.decode(&entry)).transpose()
    }

    /// The objects of a type that is watched. Never waits.
    pub fn list<K: Object>(&self, list: &List) -> Result<Vec<Arc<K>>, Error> {
        let Some(informer) = self.watching(&Kind::of::<K>(), K::metadata_api()) else {
            return Ok(Vec::new());
        };
        informer.entries(list)?.iter().map(|entry| informer.decode(entry)).collect()
    }

    /// Waits until every informer that is there now is synced.
    pub async fn synced(&self) -> Result<(), Error> {
        let informers: Vec<Arc<Informer>> = self.informers().values().map(|it| it.informer.clone()).collect();
        for informer in informers {
            informer.synced().await?;
        }
        Ok(())
    }

    /// The kinds that are watched but not synced yet.
    pub fn unsynced(&self) -> Vec<Gvk> {
        let informers = self.informers();
        let behind = informers.values().filter(|running| !running.informer.is_synced());
        behind.map(|running| running.informer.kind().gvk().clone()).collect()
    }

    /// Runs all watches until cancelled or dropped; whoever waits for the cache then is told so. Can be called once.
    pub async fn run(&self, client: kube::Client, cancel: CancellationToken) {
        let started = self.inner.started.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut run = Run { cache: self, started: started.expect("a cache is run once") };
        let mut rng = self.inner.options.seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed);
        let mut watches = JoinSet::new();
        loop {
            tokio::select! {
                biased;
                () = cancel.cancelled() => break,
                Some(Running { informer, cancel }) = run.started.recv() => {
                    let (client, rng, watch) = (client.clone(), rng.fork(), Watch(informer));
                    let watching = async move {
                        cancel.run_until_cancelled(watch.0.run(&client, rng)).await;
                    };
                    watches.spawn(watching.boxed());
                }
                Some(ended) = watches.join_next() => {
                    // Only an index or a transform can do that, and its informer cannot go on.
                    if let Err(error) = ended && error.is_panic() {
                        error!(%error, "an index or a transform panicked: its kind is watched no more");
                    }
                }
            }
        }
        watches.shutdown().await;
    }

    fn informers(&self) -> MutexGuard<'_, BTreeMap<Id, Running>> {
        self.inner.informers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A cache that is run. When it is not any more, nobody waits for it in vain.
struct Run<'a> {
    cache: &'a Cache,
    started: Started,
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        // In this order: an informer that comes now is stopped below, or by whoever cannot start it.
        self.started.close();
        for running in self.cache.informers().values() {
            running.informer.stop();
        }
    }
}

/// An informer that is run. However that ends, nobody waits for it in vain.
struct Watch(Arc<Informer>);

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.stop();
    }
}
