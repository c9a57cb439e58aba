//! The engine as a server shares it: behind a lock, with a wake-up for watchers and, on request, a log.
//!
//! No lock is held across an await. Watchers are cursors: a commit changes one number that they wait on, and
//! each then reads what it has not seen.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use kubewright_sync::ordered_watch;

use super::{Conflict, Engine as _, Event, Expired, Limits, Listing, Memory, Revision, StoredObject, Write};

/// Where commits go besides memory.
pub trait Durability: Send + Sync {
    /// Takes the outcome of a commit, which is kept or lost as one. Called in the order of revisions, under the
    /// store's lock: must not wait.
    fn record(&self, batch: &[Recorded]);
    /// A resource was dropped whole.
    fn forget(&self, resource: &str);
    /// Why nothing is kept any more, if so. Such a failure stays.
    fn failure(&self) -> Option<std::io::Error>;
    /// Keeps what is there and ends well. What is committed later is not kept.
    fn close(&self) -> std::io::Result<()>;
    /// Resolves when everything up to `revision` would survive a crash.
    fn synced(
        &self,
        revision: Revision,
    ) -> std::pin::Pin<Box<dyn Future<Output = std::io::Result<()>> + Send + '_>>;
}

/// One write of a commit, for [`Durability::record`].
#[derive(Debug)]
pub struct Recorded {
    /// Where it was written.
    pub resource: Arc<str>,
    /// What was written; of a deletion, how the object looked last.
    pub version: Arc<StoredObject>,
    /// The object is gone.
    pub deleted: bool,
}

/// A shared store.
pub struct Store {
    engine: RwLock<Memory>,
    changed: ordered_watch::Sender<Revision>,
    durability: Option<Arc<dyn Durability>>,
}

impl Store {
    /// An empty store that forgets everything when it is dropped.
    pub fn new(limits: Limits) -> Self {
        Self::with(Memory::new(limits), None)
    }

    /// A store that goes on from `engine`, and writes commits to `durability`.
    pub fn with(engine: Memory, durability: Option<Arc<dyn Durability>>) -> Self {
        let changed = ordered_watch::Sender::new(engine.revision());
        Self { engine: RwLock::new(engine), changed, durability }
    }

    /// A copy with the same contents that goes its own way, in memory.
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

    /// The objects, of any resource, that name the owner with this uid.
    pub fn dependents(&self, owner: &str) -> Vec<(Arc<str>, Arc<StoredObject>)> {
        self.read().dependents(owner)
    }

    /// The resources that hold objects.
    pub fn resources(&self) -> Vec<Arc<str>> {
        self.read().resources()
    }

    /// Applies a batch, all or nothing, and wakes watchers.
    pub fn commit(&self, batch: Vec<Write>) -> Result<Vec<Arc<StoredObject>>, Conflict> {
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
        // Sent under the lock, so that the number never goes back.
        self.changed.send_replace(engine.revision());
        Ok(versions)
    }

    /// Why nothing is kept any more, if so.
    pub fn failure(&self) -> Option<std::io::Error> {
        self.durability.as_ref().and_then(|durability| durability.failure())
    }

    /// Keeps what is there and ends well.
    pub fn close(&self) -> std::io::Result<()> {
        self.durability.as_ref().map_or(Ok(()), |durability| durability.close())
    }

    /// Drops a resource with its objects and events.
    pub fn forget(&self, resource: &str) {
        let mut engine = self.write();
        engine.forget(resource);
        if let Some(durability) = &self.durability {
            durability.forget(resource);
        }
    }

    /// Wakes whoever waits for a change, although nothing was written.
    pub fn wake(&self) {
        self.changed.send_modify(|_| {});
    }

    /// Makes everything before now unreachable for watches and lists, as if the server had just started.
    pub fn forget_past(&self) {
        self.write().forget_past();
    }

    /// A number that changes with every commit: what watchers wait on.
    pub fn changes(&self) -> ordered_watch::Receiver<Revision> {
        self.changed.subscribe()
    }

    /// Waits until everything up to `revision` would survive a crash. At once where nothing is kept.
    pub async fn synced(&self, revision: Revision) -> std::io::Result<()> {
        match &self.durability {
            Some(durability) => durability.synced(revision).await,
            None => Ok(()),
        }
    }

    // A panic while the lock was held cannot leave half a batch: the engine checks before it writes.
    fn read(&self) -> RwLockReadGuard<'_, Memory> {
        self.engine.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Memory> {
        self.engine.write().unwrap_or_else(PoisonError::into_inner)
    }
}
