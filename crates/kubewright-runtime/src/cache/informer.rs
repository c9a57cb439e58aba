//! One kind under watch: its store, who follows it, and how far it has come.
//!
//! Invariants: every change of the store is put into every inbox, in the order of the store; a follower that comes
//! later is told of everything that is there, and misses nothing in between.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};
use std::time::Duration;

use kube::api::DynamicObject;
use serde::de::DeserializeOwned;

use super::entry::{Entry, Hot, Transform};
use super::follower::Follower;
use super::inbox::Inbox;
use super::reflector::{Reflector, Selection};
use super::store::{Change, IndexFn, Occasion, Store};
use crate::client::Error;
use crate::list::List;
use crate::{Key, Kind, watch};

/// What an informer is made with.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) selection: Selection,
    /// The namespaces that are watched; none stands for all.
    pub(crate) namespaces: Vec<String>,
    pub(crate) transform: Option<Transform>,
    pub(crate) keep_managed_fields: bool,
    pub(crate) resync: Option<Duration>,
    pub(crate) hot_bytes: usize,
}

/// One kind under watch. Reads never wait, and copy no object.
pub struct Informer {
    kind: Kind,
    settings: Settings,
    hot: Hot,
    shared: RwLock<Shared>,
    parts: Vec<Part>,
}

#[derive(Default)]
struct Shared {
    store: Store,
    followers: Vec<Weak<Inbox>>,
    synced: bool,
    stopped: bool,
}

/// A namespace, or all of them, and how far its watch has come.
pub(crate) struct Part {
    pub(crate) namespace: Option<String>,
    progress: watch::Sender<Progress>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Progress {
    synced: bool,
    version: u64,
    stopped: bool,
}

impl Part {
    /// Everything up to a version has been seen.
    pub(crate) fn reached(&self, version: u64) {
        self.progress.send_if_modified(|progress| {
            let further = version > progress.version;
            progress.version = progress.version.max(version);
            further
        });
    }
}

impl Informer {
    pub(crate) fn new(kind: Kind, settings: Settings) -> Self {
        let namespaces: Vec<Option<String>> = match settings.namespaces.as_slice() {
            [] => vec![None],
            some => some.iter().cloned().map(Some).collect(),
        };
        let part = |namespace| Part { namespace, progress: watch::Sender::default() };
        let hot = Hot::new(settings.hot_bytes);
        Self {
            kind,
            settings,
            hot,
            shared: RwLock::default(),
            parts: namespaces.into_iter().map(part).collect(),
        }
    }

    /// What is watched.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// How many objects are there.
    pub fn len(&self) -> usize {
        self.read().store.len()
    }

    /// Whether no object is there.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of JSON that are held.
    pub fn bytes(&self) -> usize {
        self.read().store.bytes()
    }

    /// Whether everything that was there at the start is known.
    pub fn is_synced(&self) -> bool {
        self.read().synced
    }

    /// Waits until everything that was there at the start is known.
    pub async fn synced(&self) -> Result<(), Error> {
        for part in &self.parts {
            let mut progress = part.progress.subscribe();
            if !progress.wait_for(|it| it.synced || it.stopped).await.synced {
                return Err(Error::CacheStopped(self.kind.gvk().to_string()));
            }
        }
        Ok(())
    }

    /// One object, without decoding it.
    pub fn entry(&self, key: &Key) -> Option<Arc<Entry>> {
        self.read().store.get(key.as_str()).cloned()
    }

    /// The objects of a list, without decoding them, in the order of their keys.
    pub fn entries(&self, list: &List) -> Result<Vec<Arc<Entry>>, Error> {
        let labels = list.label_selector()?;
        let namespace = list.namespace.as_deref();
        let shared = self.read();
        let mut found: Vec<Arc<Entry>> = match list.fields.split_first() {
            None => shared.store.iter(namespace).cloned().collect(),
            Some(((field, value), more)) => {
                let mut found = self.find(&shared.store, field, value, namespace)?;
                for (field, value) in more {
                    let also = self.find(&shared.store, field, value, namespace)?;
                    // Both are in the order of their keys.
                    found.retain(|entry| also.binary_search_by(|other| other.key().cmp(entry.key())).is_ok());
                }
                found
            }
        };
        drop(shared);
        if !labels.is_empty() {
            found.retain(|entry| labels.matches(&entry.marks().labels));
        }
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
        // These two need no index: they are the key.
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

    /// An entry as its Rust type.
    pub fn decode<K: DeserializeOwned + Send + Sync + 'static>(
        &self,
        entry: &Entry,
    ) -> Result<Arc<K>, Error> {
        entry.decode(&self.hot).map_err(|source| self.unreadable(entry, source))
    }

    /// An entry without a Rust type of its own.
    pub fn decode_dynamic(&self, entry: &Entry) -> Result<Arc<DynamicObject>, Error> {
        entry.decode_dynamic(&self.kind, &self.hot).map_err(|source| self.unreadable(entry, source))
    }

    fn unreadable(&self, entry: &Entry, source: serde_json::Error) -> Error {
        Error::Decode { what: format!("{} {}", self.kind.name(), entry.key()), source }
    }

    /// Adds an index over what is there and what comes.
    pub(crate) fn add_index(&self, name: &str, values: IndexFn) {
        self.write().store.add_index(name, values);
    }

    /// Follows everything that is there and that happens.
    ///
    /// Whoever follows may be slow: the watch waits for nobody.
    pub fn follower(&self) -> Follower {
        Follower::new(self.follow())
    }

    /// Follows everything that is there and that happens.
    pub(crate) fn follow(&self) -> Arc<Inbox> {
        let inbox = Arc::new(Inbox::default());
        let mut shared = self.write();
        for entry in shared.store.iter(None) {
            inbox.push(Change { old: None, new: Some(entry.clone()), occasion: Occasion::Initial });
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

    /// The part that watches a namespace.
    fn part(&self, namespace: Option<&str>) -> Option<&Part> {
        self.parts.iter().find(|part| part.namespace.is_none() || part.namespace.as_deref() == namespace)
    }

    /// Whether an object in a namespace would be seen here, its labels and fields aside.
    pub(crate) fn covers(&self, namespace: Option<&str>) -> bool {
        self.part(namespace).is_some()
    }

    /// Whether the cache knows of everything up to a version in a namespace.
    pub(crate) fn has_seen(&self, namespace: Option<&str>, version: u64) -> bool {
        self.part(namespace).is_none_or(|part| part.progress.borrow().version >= version)
    }

    /// Waits until `seen` says so, asking after each change in a namespace.
    pub(crate) async fn wait_until(&self, namespace: Option<&str>, mut seen: impl FnMut(&Self) -> bool) {
        let Some(part) = self.part(namespace) else { return };
        let mut progress = part.progress.subscribe();
        loop {
            // Before asking: what happens in between is then still news.
            let stopped = progress.borrow_and_update().stopped;
            if stopped || seen(self) {
                return;
            }
            progress.changed().await;
        }
    }

    /// Watches for ever.
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

    async fn resync(&self) {
        let Some(every) = self.settings.resync else { return std::future::pending().await };
        let mut tick = tokio::time::interval(every);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        tick.tick().await;
        loop {
            tick.tick().await;
            let shared = self.read();
            for entry in shared.store.iter(None) {
                let same =
                    Change { old: Some(entry.clone()), new: Some(entry.clone()), occasion: Occasion::Resync };
                shared.tell(same);
            }
        }
    }

    /// Says that nothing more will come, to those who follow and to those who wait.
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

    /// The known version of an object, so that one that did not change need not be kept twice.
    pub(crate) fn known(&self, key: &Key, version: u64) -> Option<Arc<Entry>> {
        let shared = self.read();
        shared.store.get(key.as_str()).filter(|known| known.version() == version && version != 0).cloned()
    }

    /// Takes a whole list.
    pub(crate) fn replace(&self, part: &Part, now: Vec<Arc<Entry>>, version: u64) {
        let mut shared = self.write();
        let initial = !part.progress.borrow().synced;
        for mut change in shared.store.replace(part.namespace.as_deref(), now) {
            if initial {
                change.occasion = Occasion::Initial;
            }
            shared.tell(change);
        }
        part.progress.send_modify(|progress| {
            progress.synced = true;
            // Never back: a list from a lagging replica does not undo what was seen.
            progress.version = progress.version.max(version);
        });
        if !shared.synced && self.parts.iter().all(|part| part.progress.borrow().synced) {
            shared.synced = true;
            for inbox in shared.followers.iter().filter_map(Weak::upgrade) {
                inbox.mark_synced();
            }
        }
    }

    /// Takes an object that was added or changed.
    pub(crate) fn put(&self, part: &Part, entry: Arc<Entry>) {
        let version = entry.version();
        let mut shared = self.write();
        if let Some(change) = shared.store.put(entry) {
            shared.tell(change);
        }
        drop(shared);
        part.reached(version);
    }

    /// Takes the end of an object.
    pub(crate) fn remove(&self, part: &Part, last: Arc<Entry>) {
        let version = last.version();
        let mut shared = self.write();
        let key = last.key().clone();
        if let Some(change) = shared.store.remove(&key, Some(last)) {
            shared.tell(change);
        }
        drop(shared);
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
    fn tell(&self, change: Change) {
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
