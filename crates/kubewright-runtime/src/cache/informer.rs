//! One watched kind: its store, its followers, and the resourceVersions that its watches have reached.
//!
//! Invariants: every change of the store goes into every inbox, in order; a follower that is added later gets all
//! objects first and misses no change; user code (index functions, transforms) does not run under the lock that readers
//! take, and its panics are contained.

mod functions;
mod resync;

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};
use std::time::Duration;

use kube::api::DynamicObject;
use kubewright_sync::ordered_watch;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use self::functions::Indexer;
use super::Cache;
use super::entry::{Entry, Keep, Transform};
use super::follower::Follower;
use super::health::WatchHealth;
use super::hot::Hot;
use super::inbox::Inbox;
use super::metrics::CacheMetrics;
use super::reflector::{Reflector, Selection};
use super::store::{Change, Difference, Occasion, Removal, Store};
use crate::client::{Error, Writable};
use crate::list::ListOptions;
use crate::{Key, Kind};

/// Receives objects before they are stored: the kind, the entry, and the JSON as the server sent it.
pub type Observer = Arc<dyn Fn(&Kind, &Entry, &str) + Send + Sync>;

/// State shared by all informers of a cache.
pub(crate) struct Common {
    /// Whether the cache has been started.
    pub(crate) started: ordered_watch::Sender<bool>,
    pub(crate) metrics: CacheMetrics,
    pub(crate) hot: Hot,
    pub(crate) observer: OnceLock<Observer>,
}

impl Common {
    pub(crate) fn new(decoded_budget: usize) -> Self {
        Self {
            started: ordered_watch::Sender::default(),
            metrics: CacheMetrics::default(),
            hot: Hot::new(decoded_budget),
            observer: OnceLock::new(),
        }
    }
}

/// The options of an informer.
#[derive(Clone)]
pub(crate) struct Settings {
    /// Request and store only metadata.
    pub(crate) metadata_only: bool,
    /// The watched scopes, one watch each.
    pub(crate) scopes: Vec<Scoped>,
    pub(crate) keep_managed_fields: bool,
    pub(crate) keep_decoded: bool,
}

impl Settings {
    /// Whether no selector excludes objects.
    pub(crate) fn is_all(&self) -> bool {
        self.scopes.iter().all(|scope| scope.selection.is_all())
    }

    /// Whether objects in a namespace are watched. Ignores labels and fields.
    pub(crate) fn covers(&self, namespace: Option<&str>) -> bool {
        self.scopes.iter().any(|scope| scope.namespace.is_none() || scope.namespace.as_deref() == namespace)
    }
}

/// The selection in one namespace, or in all.
#[derive(Clone)]
pub(crate) struct Scoped {
    pub(crate) namespace: Option<String>,
    /// If `namespace` is `None`: the namespaces that have a scope of their own.
    pub(crate) except: Vec<String>,
    pub(crate) selection: Selection,
    pub(crate) transform: Option<Transform>,
    /// The resync period; `None` for no resync.
    pub(crate) resync: Option<Duration>,
}

/// Lists and watches one kind. Reads never wait and do not copy objects.
pub struct Informer {
    kind: Kind,
    settings: Settings,
    common: Arc<Common>,
    /// The index functions, in the order of the store's indexes. Writers of the store hold this lock while they compute
    /// index values and store them, so that readers wait for neither.
    indexers: Mutex<Vec<Indexer>>,
    shared: RwLock<Shared>,
    parts: Vec<Part>,
    /// Read lists in pages until then, because the server did not stream one.
    paged_until: Mutex<Option<Instant>>,
    /// Whether the kind may not be installed: nothing waits for its first list.
    optional: AtomicBool,
}

#[derive(Default)]
struct Shared {
    store: Store,
    followers: Vec<Weak<Inbox>>,
    synced: bool,
    stopped: bool,
}

/// One watch: its scope and its progress.
pub(crate) struct Part {
    pub(crate) scope: Scoped,
    pub(crate) health: WatchHealth,
    progress: ordered_watch::Sender<Progress>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Progress {
    synced: bool,
    version: u64,
    stopped: bool,
    /// The end of the last list.
    listed: Option<Instant>,
}

impl Part {
    /// The watched namespace; `None` for all.
    pub(crate) fn namespace(&self) -> Option<&str> {
        self.scope.namespace.as_deref()
    }

    /// Records that everything up to a resourceVersion has been seen.
    pub(crate) fn reached(&self, version: u64) {
        self.progress.send_if_modified(|progress| {
            let further = version > progress.version;
            progress.version = progress.version.max(version);
            further
        });
    }
}

impl Informer {
    pub(crate) fn new(kind: Kind, settings: Settings, common: Arc<Common>) -> Self {
        let part = |scope: &Scoped| Part {
            scope: scope.clone(),
            health: WatchHealth::default(),
            progress: ordered_watch::Sender::default(),
        };
        let parts = settings.scopes.iter().map(part).collect();
        Self {
            kind,
            settings,
            common,
            indexers: Mutex::default(),
            shared: RwLock::default(),
            parts,
            paged_until: Mutex::default(),
            optional: AtomicBool::new(false),
        }
    }

    /// The watched kind.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Sets whether the kind may not be installed.
    pub(crate) fn set_optional(&self, optional: bool) {
        self.optional.store(optional, Ordering::Relaxed);
    }

    /// Whether the kind is optional, and not listed yet or no longer served.
    pub(crate) fn is_missing(&self) -> bool {
        let is_unserved = || self.parts.iter().any(|part| part.health.is_unserved());
        self.optional.load(Ordering::Relaxed) && (!self.is_synced() || is_unserved())
    }

    /// The number of objects.
    pub fn len(&self) -> usize {
        self.read().store.len()
    }

    /// Whether there are no objects.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The size of the stored JSON in bytes.
    pub fn bytes(&self) -> usize {
        self.read().store.bytes()
    }

    /// Whether the first list is complete.
    pub fn is_synced(&self) -> bool {
        self.read().synced
    }

    /// Whether the informer has stopped: it was removed, its cache has stopped, or its task has failed.
    pub fn is_stopped(&self) -> bool {
        self.read().stopped
    }

    /// Waits until the first list is complete. Fails if the informer stops.
    pub async fn synced(&self) -> Result<(), Error> {
        for part in &self.parts {
            let mut progress = part.progress.subscribe();
            if progress.wait_for(|it| it.synced || it.stopped).await.is_ok_and(|it| it.stopped) {
                return Err(self.stopped());
            }
        }
        Ok(())
    }

    /// Like [`Informer::synced`], but fails instead of waiting if the cache has not been started.
    pub(crate) async fn readable(&self) -> Result<(), Error> {
        match self.check() {
            Err(Error::CacheNotSynced(_)) => self.synced().await,
            checked => checked,
        }
    }

    /// The informer that serves reads of this one in the current task, if it is a different one.
    pub(super) fn in_place(&self, metadata_only: bool) -> Option<Arc<Self>> {
        Cache::replacement_of(&self.common)?.watching(&self.kind, metadata_only)
    }

    /// Checks that reads can be served: the first list is complete and the informer has not stopped.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let shared = self.read();
        let kind = || self.kind.gvk().to_string();
        match (shared.stopped, shared.synced) {
            (true, _) => Err(self.stopped()),
            (_, true) => Ok(()),
            _ if *self.common.started.borrow() => Err(Error::CacheNotSynced(kind())),
            _ => Err(Error::CacheNotStarted(kind())),
        }
    }

    fn stopped(&self) -> Error {
        Error::CacheStopped(self.kind.gvk().to_string())
    }

    /// The current entry of an object. Does not check whether the informer is synced or has stopped;
    /// [`Cache::get`](super::Cache::get) does.
    pub fn entry(&self, key: &Key) -> Option<Arc<Entry>> {
        self.read().store.get(key.as_str()).cloned()
    }

    /// The entry of an object. Fails if the first list is not complete, or the informer has stopped.
    pub(crate) fn get(&self, key: &Key) -> Result<Option<Arc<Entry>>, Error> {
        self.check()?;
        Ok(self.entry(key))
    }

    /// The entries that match a list, ordered by key. Fails if the first list is not complete, or the informer has
    /// stopped.
    pub fn entries(&self, list: &ListOptions) -> Result<Vec<Arc<Entry>>, Error> {
        self.check()?;
        let labels = list.label_selector()?;
        let namespace = list.namespace.as_deref();
        let shared = self.read();
        let mut found: Vec<Arc<Entry>> = match list.fields.split_first() {
            None if labels.is_empty() => shared.store.iter(namespace).cloned().collect(),
            None => shared.store.select(&labels, namespace),
            Some(((field, value), more)) => {
                let mut found = self.find(&shared.store, field, value, namespace)?;
                for (field, value) in more {
                    let also = self.find(&shared.store, field, value, namespace)?;
                    // Both are ordered by key.
                    found.retain(|entry| also.binary_search_by(|other| other.key().cmp(entry.key())).is_ok());
                }
                found.retain(|entry| shared.store.matches(&labels, entry));
                found
            }
        };
        drop(shared);
        if let Some(limit) = list.limit {
            found.truncate(limit);
        }
        Ok(found)
    }

    fn find(
        &self,
        store: &Store,
        field: &str,
        value: &str,
        namespace: Option<&str>,
    ) -> Result<Vec<Arc<Entry>>, Error> {
        // These two fields are the key and need no index.
        match (field, namespace) {
            ("metadata.name", Some(namespace)) => {
                return Ok(store
                    .get(Key::namespaced(namespace, value).as_str())
                    .cloned()
                    .into_iter()
                    .collect());
            }
            ("metadata.name", None) => {
                return Ok(store.iter(None).filter(|entry| entry.key().name() == value).cloned().collect());
            }
            ("metadata.namespace", Some(namespace)) if namespace != value => return Ok(Vec::new()),
            ("metadata.namespace", _) => return Ok(store.iter(Some(value)).cloned().collect()),
            _ => {}
        }
        let found = store
            .find(field, value, namespace)
            .ok_or_else(|| Error::NoIndex { kind: self.kind.gvk().to_string(), index: field.to_owned() })?;
        Ok(found.cloned().collect())
    }

    /// Decodes an entry as its Rust type.
    pub fn decode<K: DeserializeOwned + Send + Sync + 'static>(
        &self,
        entry: &Entry,
    ) -> Result<Arc<K>, Error> {
        entry.decode(self.keep()).map_err(|source| self.unreadable(entry, source))
    }

    /// Decodes an entry that is about to be stored. Its followers will read it next, so the result is kept at once.
    pub(super) fn decode_new<K: DeserializeOwned + Send + Sync + 'static>(
        &self,
        entry: &Entry,
    ) -> Result<Arc<K>, Error> {
        let keep = if self.settings.keep_decoded { Keep::All } else { Keep::New(&self.common.hot) };
        entry.decode(keep).map_err(|source| self.unreadable(entry, source))
    }

    /// Decodes an entry as a dynamic object.
    pub fn decode_dynamic(&self, entry: &Entry) -> Result<Arc<DynamicObject>, Error> {
        entry.decode_dynamic(&self.kind, self.keep()).map_err(|source| self.unreadable(entry, source))
    }

    fn keep(&self) -> Keep<'_> {
        if self.settings.keep_decoded { Keep::All } else { Keep::Hot(&self.common.hot) }
    }

    /// Decodes an entry as a typed or a dynamic object.
    pub(crate) fn object<K: Writable>(&self, entry: &Entry) -> Result<Arc<K>, Error> {
        if TypeId::of::<K>() != TypeId::of::<DynamicObject>() {
            return self.decode(entry);
        }
        let object: Arc<dyn Any + Send + Sync> = self.decode_dynamic(entry)?;
        Ok(object.downcast().expect("K is DynamicObject"))
    }

    fn unreadable(&self, entry: &Entry, source: serde_json::Error) -> Error {
        Error::Decode { what: format!("{} {}", self.kind.name(), entry.key()), source }
    }

    /// Follows all existing objects and all later changes.
    ///
    /// A slow follower does not delay the watch.
    pub fn follower(&self) -> Follower {
        Follower::new(self.follow())
    }

    /// Follows all existing objects and all later changes.
    pub(crate) fn follow(&self) -> Arc<Inbox> {
        let inbox = Arc::new(Inbox::default());
        let mut shared = self.write();
        for entry in shared.store.iter(None) {
            inbox.push(Change {
                old: None,
                new: Some(entry.clone()),
                occasion: Occasion::Initial,
                removal: None,
            });
        }
        if shared.synced {
            inbox.mark_synced();
        }
        if shared.stopped {
            inbox.close();
        }
        shared.followers.push(Arc::downgrade(&inbox));
        inbox
    }

    /// Whether to request a streaming list.
    pub(crate) fn streams(&self) -> bool {
        let until = *self.paged_until.lock().unwrap_or_else(PoisonError::into_inner);
        until.is_none_or(|until| Instant::now() >= until)
    }

    /// Reads lists in pages for this long.
    pub(crate) fn page_for(&self, time: Duration) {
        let mut until = self.paged_until.lock().unwrap_or_else(PoisonError::into_inner);
        *until = Some(Instant::now() + time);
    }

    /// The watches of this informer: one per namespace, or one for all.
    pub(crate) fn parts(&self) -> &[Part] {
        &self.parts
    }

    pub(crate) fn metrics(&self) -> &CacheMetrics {
        &self.common.metrics
    }

    /// The watch of a namespace.
    fn part(&self, namespace: Option<&str>) -> Option<&Part> {
        let of = |wanted: Option<&str>| self.parts.iter().find(|part| part.namespace() == wanted);
        of(namespace).or_else(|| of(None))
    }

    /// The selectors that apply in a namespace; `None` if it is not watched.
    pub(crate) fn selection(&self, namespace: Option<&str>) -> Option<&Selection> {
        self.part(namespace).map(|part| &part.scope.selection)
    }

    /// Whether objects in a namespace are watched. Ignores labels and fields.
    pub(crate) fn covers(&self, namespace: Option<&str>) -> bool {
        self.settings.covers(namespace)
    }

    /// Whether the cache has seen everything up to a resourceVersion in a namespace.
    pub(crate) fn has_seen(&self, namespace: Option<&str>, version: u64) -> bool {
        self.part(namespace).is_none_or(|part| part.progress.borrow().version >= version)
    }

    /// Whether a list of a namespace has ended at or after an instant.
    pub(crate) fn has_listed_since(&self, namespace: Option<&str>, instant: Instant) -> bool {
        self.part(namespace).is_some_and(|part| part.progress.borrow().listed >= Some(instant))
    }

    /// Waits until `seen` returns true, checking after each change in a namespace.
    pub(crate) async fn wait_until(&self, namespace: Option<&str>, mut seen: impl FnMut(&Self) -> bool) {
        let Some(part) = self.part(namespace) else { return };
        let mut progress = part.progress.subscribe();
        loop {
            // Mark the progress as read before the check, so that a change during the check wakes us again.
            let stopped = progress.borrow_and_update().stopped;
            if stopped || seen(self) {
                return;
            }
            if progress.changed().await.is_err() {
                return;
            }
        }
    }

    /// Lists and watches until it is cancelled.
    pub(crate) async fn run(&self, client: &kube::Client, mut rng: fastrand::Rng) {
        let parts = self.parts.iter().map(|part| {
            let rng = rng.fork();
            async move { Reflector::new(self, part, client, rng).run().await }
        });
        let watches = futures_util::future::join_all(parts);
        tokio::select! {
            biased;
            () = self.resync() => {}
            _ = watches => {}
        }
    }

    /// Stops the informer: reads fail from now on, followers and waiters end.
    pub(crate) fn stop(&self) {
        let mut shared = self.write();
        shared.stopped = true;
        for inbox in shared.followers.iter().filter_map(Weak::upgrade) {
            inbox.close();
        }
        drop(shared);
        for part in &self.parts {
            part.progress.send_modify(|progress| progress.stopped = true);
        }
    }

    /// The stored entry of this version of an object, so that an unchanged object is not stored twice.
    fn known(&self, key: &Key, version: u64) -> Option<Arc<Entry>> {
        let shared = self.read();
        shared.store.get(key.as_str()).filter(|known| known.version() == version && version != 0).cloned()
    }

    /// Stores a complete list.
    pub(crate) fn replace(&self, part: &Part, now: Vec<Arc<Entry>>, version: u64) {
        let indexers = self.indexers();
        let Difference { removed, changed } =
            self.read().store.difference(part.namespace(), &part.scope.except, now);
        let changed = changed.into_iter().map(|entry| self.indexed(&indexers, entry)).collect();
        let mut shared = self.write();
        let initial = !part.progress.borrow().synced;
        // An object missing from a list with a selector may still exist.
        let removal = if part.scope.selection.is_all() { Removal::Deleted } else { Removal::Unknown };
        for mut change in shared.store.apply(&removed, removal, changed) {
            if initial {
                change.occasion = Occasion::Initial;
            }
            shared.notify(change);
        }
        part.progress.send_modify(|progress| {
            progress.synced = true;
            // Never go back: a list from a stale replica must not undo progress.
            progress.version = progress.version.max(version);
            progress.listed = Some(Instant::now());
        });
        if !initial {
            for inbox in shared.followers.iter().filter_map(Weak::upgrade) {
                inbox.mark_relisted();
            }
        }
        if !shared.synced && self.parts.iter().all(|part| part.progress.borrow().synced) {
            shared.synced = true;
            for inbox in shared.followers.iter().filter_map(Weak::upgrade) {
                inbox.mark_synced();
            }
        }
    }

    /// Stores an added or changed object.
    pub(crate) fn put(&self, part: &Part, entry: Arc<Entry>) {
        let version = entry.version();
        let indexers = self.indexers();
        if !self.read().store.has(&entry) {
            let indexed = self.indexed(&indexers, entry);
            let mut shared = self.write();
            if let Some(change) = shared.store.put(indexed) {
                shared.notify(change);
            }
        }
        drop(indexers);
        part.reached(version);
    }

    /// Removes an object.
    pub(crate) fn remove(&self, part: &Part, last: Arc<Entry>, removal: Removal) {
        let version = last.version();
        let indexers = self.indexers();
        let mut shared = self.write();
        let key = last.key().clone();
        if let Some(change) = shared.store.remove(&key, Some(last), removal) {
            shared.notify(change);
        }
        drop(shared);
        drop(indexers);
        part.reached(version);
    }

    fn read(&self) -> RwLockReadGuard<'_, Shared> {
        self.shared.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Shared> {
        let mut shared = self.shared.write().unwrap_or_else(PoisonError::into_inner);
        shared.followers.retain(|follower| follower.strong_count() > 0);
        shared
    }
}

impl Shared {
    fn notify(&self, change: Change) {
        let mut followers = self.followers.iter().filter_map(Weak::upgrade);
        let Some(mut last) = followers.next() else { return };
        for follower in followers {
            last.push(change.clone());
            last = follower;
        }
        last.push(change);
    }
}

impl fmt::Debug for Informer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Informer")
            .field("kind", &self.kind)
            .field("objects", &self.len())
            .finish_non_exhaustive()
    }
}
