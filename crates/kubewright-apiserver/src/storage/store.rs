//! The engine as shared by a server: behind a lock, with notification of watchers and an optional log.
//!
//! No lock is held across an await. Watchers are cursors: a commit updates the revision that they wait on,
//! and each then reads the events that it has not seen.

use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use kubewright_sync::ordered_watch;

use super::{Conflict, Engine as _, Event, Expired, Limits, Listing, Memory, Revision, StoredObject, Write};

/// The future result of [`Durability`].
pub type Outcome<'a> = Pin<Box<dyn Future<Output = std::io::Result<()>> + Send + 'a>>;

/// Makes commits durable.
pub trait Durability: Send + Sync {
    /// Records a commit; all its writes are stored or lost together. Called in the order of revisions, under
    /// the store's lock: must not block.
    fn record(&self, batch: &[Recorded]);
    /// Records that a resource was dropped.
    fn forget(&self, resource: &str);
    /// Why commits cannot be made durable now, if they cannot.
    fn failure(&self) -> Option<std::io::Error>;
    /// Flushes and marks a clean shutdown. Later commits are not stored.
    fn close(&self) -> std::io::Result<()>;
    /// The last revision that would survive a crash.
    fn durable(&self) -> Revision;
    /// Resolves when everything up to `revision` would survive a crash. Fails if it cannot be stored now.
    fn synced(&self, revision: Revision) -> Outcome<'_>;
    /// Resolves when commits can be made durable again. Fails if the failure is permanent.
    fn recovered(&self) -> Outcome<'_>;
}

/// One write of a commit, for [`Durability::record`].
#[derive(Debug)]
pub struct Recorded {
    /// Resource.
    pub resource: Arc<str>,
    /// The new version; for a deletion, the last state.
    pub version: Arc<StoredObject>,
    /// The object was deleted.
    pub deleted: bool,
}

/// A shared store. It can be read by every part of a server; writing needs the [`WriteHandle`].
pub struct Store {
    engine: RwLock<Memory>,
    changed: ordered_watch::Sender<Revision>,
    durability: Option<Arc<dyn Durability>>,
}

impl Store {
    /// An empty store without durability.
    pub fn new(limits: Limits) -> Self {
        Self::with(Memory::new(limits), None)
    }

    /// A store that continues from `engine` and writes commits to `durability`.
    pub fn with(engine: Memory, durability: Option<Arc<dyn Durability>>) -> Self {
        let changed = ordered_watch::Sender::new(engine.revision());
        Self { engine: RwLock::new(engine), changed, durability }
    }

    /// An independent in-memory copy with the same contents.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self::with(self.read().clone(), None)
    }

    /// The revision of the last change.
    pub fn revision(&self) -> Revision {
        self.read().revision()
    }

    /// The object at `key`.
    pub fn get(&self, resource: &str, key: &str) -> Option<Arc<StoredObject>> {
        self.read().get(resource, key)
    }

    /// The objects whose keys start with `prefix`, now or at an earlier revision.
    pub fn list(&self, resource: &str, prefix: &str, at: Option<Revision>) -> Result<Listing, Expired> {
        self.read().list(resource, prefix, at)
    }

    /// Up to `max` events of a resource after a revision.
    pub fn events(&self, resource: &str, after: Revision, max: usize) -> Result<Vec<Arc<Event>>, Expired> {
        self.read().events(resource, after, max)
    }

    /// The objects, of any resource, that have an owner reference with this UID.
    pub fn dependents(&self, owner: &str) -> Vec<(Arc<str>, Arc<StoredObject>)> {
        self.read().dependents(owner)
    }

    /// The resources that have objects.
    pub fn resources(&self) -> Vec<Arc<str>> {
        self.read().resources()
    }

    /// Applies a batch atomically and wakes watchers. Other modules commit with a [`WriteHandle`].
    pub(super) fn commit(&self, batch: Vec<Write>) -> Result<Vec<Arc<StoredObject>>, Conflict> {
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        let mut engine = self.write();
        let Some(durability) = &self.durability else {
            let versions = engine.commit(batch)?;
            self.changed.send_replace(engine.revision());
            return Ok(versions);
        };
        let kinds: Vec<(Arc<str>, bool)> = batch
            .iter()
            .map(|write| (write.resource.clone(), matches!(write.change, super::Change::Delete { .. })))
            .collect();
        let versions = engine.commit(batch)?;
        let recorded: Vec<Recorded> = kinds
            .into_iter()
            .zip(&versions)
            .map(|((resource, deleted), version)| Recorded { resource, version: version.clone(), deleted })
            .collect();
        durability.record(&recorded);
        // Send under the lock, so that the revision never decreases.
        self.changed.send_replace(engine.revision());
        Ok(versions)
    }

    /// Why commits cannot be made durable now, if they cannot.
    pub fn failure(&self) -> Option<std::io::Error> {
        self.durability.as_ref().and_then(|durability| durability.failure())
    }

    /// The revision that reads must show: the last durable one while commits cannot be made durable, `None` for the
    /// latest otherwise.
    pub fn readable(&self) -> Option<Revision> {
        let durability = self.durability.as_ref()?;
        durability.failure()?;
        Some(durability.durable())
    }

    /// As [`Store::get`], for a read: at the [readable](Self::readable) revision.
    pub fn get_readable(&self, resource: &str, key: &str) -> Option<Arc<StoredObject>> {
        let Some(at) = self.readable() else { return self.get(resource, key) };
        let listing = self.list(resource, key, Some(at)).ok()?;
        listing.items.into_iter().find(|version| *version.key == *key)
    }

    /// Flushes the log and marks a clean shutdown.
    pub fn close(&self) -> std::io::Result<()> {
        self.durability.as_ref().map_or(Ok(()), |durability| durability.close())
    }

    /// Drops a resource with its objects and events.
    pub(super) fn forget(&self, resource: &str) {
        let mut engine = self.write();
        engine.forget(resource);
        if let Some(durability) = &self.durability {
            durability.forget(resource);
        }
    }

    /// Wakes all watchers without a write.
    pub fn wake(&self) {
        self.changed.send_modify(|_| {});
    }

    /// A receiver that is notified of every commit.
    pub fn changes(&self) -> ordered_watch::Receiver<Revision> {
        self.changed.subscribe()
    }

    /// As [`Store::synced`], but waits while commits cannot be made durable. Fails only if that is permanent.
    pub async fn stored(&self, revision: Revision) -> std::io::Result<()> {
        let Some(durability) = &self.durability else { return Ok(()) };
        while durability.synced(revision).await.is_err() {
            durability.recovered().await?;
        }
        Ok(())
    }

    /// Waits until everything up to `revision` would survive a crash. Fails if it cannot be stored now. Returns at once
    /// without durability.
    pub async fn synced(&self, revision: Revision) -> std::io::Result<()> {
        match &self.durability {
            Some(durability) => durability.synced(revision).await,
            None => Ok(()),
        }
    }

    // Poisoning is harmless: the engine checks a batch before it writes, so a panic leaves no partial batch.
    fn read(&self) -> RwLockReadGuard<'_, Memory> {
        self.engine.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Memory> {
        self.engine.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The permission to write to a store. A store has one handle, because making it consumes the store; the handle cannot
/// be cloned. The registry of a server owns it, so no other part can commit.
pub struct WriteHandle {
    store: Arc<Store>,
}

impl WriteHandle {
    /// The handle of a store that is not shared yet.
    pub fn new(store: Store) -> Self {
        Self { store: Arc::new(store) }
    }

    /// The store, for reading.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Applies a batch atomically and wakes watchers.
    pub fn commit(&self, batch: Vec<Write>) -> Result<Vec<Arc<StoredObject>>, Conflict> {
        self.store.commit(batch)
    }

    /// Drops a resource with its objects and events.
    pub fn forget(&self, resource: &str) {
        self.store.forget(resource);
    }

    /// Makes earlier revisions unavailable to watches and lists, as after a restart.
    pub fn forget_past(&self) {
        self.store.write().forget_past();
    }
}
