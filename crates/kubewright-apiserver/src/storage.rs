//! Object storage: the contract, and an in-memory engine.
//!
//! # Contract
//!
//! 1. **One counter.** Every write takes the next revision; a batch takes one per write, in order. Revisions
//!    never repeat and never decrease.
//! 2. **Versions are immutable.** A [`StoredObject`] never changes.
//! 3. **Batches are atomic.** Either all preconditions of a batch hold and all its writes take effect, or none.
//! 4. **Every change is an event** of its resource, in the order of revisions, with the previous version.
//!    Events are kept in a ring that is bounded in count and in bytes. Reading from a dropped event returns
//!    [`Expired`], never a gap.
//! 5. **The past is readable** as far as the ring reaches: a list at an earlier revision returns what a list
//!    returned at that time.
//! 6. **Forks are independent.** A fork starts with the same contents; neither sees the other's writes.
//!
//! [`conformance`] tests the contract for any engine.
//!
//! [`Memory`] is pure and synchronous: no locks, no clock, no tasks. [`Store`] wraps it for a server. All parts of a server
//! read the store; only the registry has its [`WriteHandle`].

mod attributes;
pub(crate) mod compaction;
pub mod conformance;
pub mod log;
mod memory;
mod store;
mod stored_object;

use std::sync::Arc;

pub use attributes::Attributes;
use bytes::Bytes;
pub use memory::Memory;
pub use store::{Durability, Outcome, Recorded, Store, WriteHandle};
pub use stored_object::{Event, EventKind, StoredObject};

/// The revision counter of a store.
pub type Revision = u64;

/// Limits of the event ring, which serves watches and lists at earlier revisions.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Events per resource.
    pub events: usize,
    /// Total size of the old versions in those events, per resource. Current versions take no further memory.
    pub bytes: usize,
}

impl Default for Limits {
    /// The maximum size of kube-apiserver's watch cache, but at most 16 MiB of old versions.
    fn default() -> Self {
        Self { events: 102_400, bytes: 16 << 20 }
    }
}

/// One write of a batch.
#[derive(Debug)]
pub struct Write {
    /// The resource's name in storage (`apps/deployments`).
    pub resource: Arc<str>,
    /// `namespace/name`, or the name of a cluster-scoped object.
    pub key: Arc<str>,
    /// Precondition.
    pub expect: Expect,
    /// The change.
    pub change: Change,
}

/// The precondition of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// The object does not exist.
    Absent,
    /// The object exists at this revision.
    At(Revision),
}

/// The change that a write makes.
#[derive(Debug)]
pub enum Change {
    /// Creates or replaces an object.
    Put {
        /// The object.
        object: Encoder,
        /// Indexed attributes of the object.
        attributes: Attributes,
    },
    /// Deletes the object. Carries its last state.
    Delete {
        /// The object.
        object: Encoder,
        /// Indexed attributes of the object.
        attributes: Attributes,
    },
}

/// Encodes an object as JSON, without `apiVersion` and `kind`, and with the resourceVersion that the commit
/// assigns.
pub struct Encoder(Box<dyn FnOnce(Revision) -> Bytes + Send>);

impl Encoder {
    /// `encode` is called once, under the lock of the store.
    pub fn new(encode: impl FnOnce(Revision) -> Bytes + Send + 'static) -> Self {
        Self(Box::new(encode))
    }

    fn encode(self, revision: Revision) -> Bytes {
        (self.0)(revision)
    }
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Encoder").finish_non_exhaustive()
    }
}

/// A precondition of the batch does not hold; nothing was written.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
#[error("write {at} of the batch conflicts with the stored version of {key}")]
pub struct Conflict {
    /// Position of the write in the batch.
    pub at: usize,
    /// The key.
    pub key: String,
    /// The current revision, if the object exists.
    pub found: Option<Revision>,
}

/// The requested revision is older than the event ring.
#[derive(Debug, Clone, Copy, thiserror::Error, PartialEq, Eq)]
#[error("revision {asked} has been compacted; the oldest is {oldest}")]
pub struct Expired {
    /// The requested revision.
    pub asked: Revision,
    /// The oldest revision that can be read.
    pub oldest: Revision,
}

/// The objects of a resource at one revision.
#[derive(Debug)]
pub struct Listing {
    /// Ordered by key.
    pub items: Vec<Arc<StoredObject>>,
    /// The revision of this list.
    pub revision: Revision,
}

/// A storage engine. See the [module](self) for the contract.
pub trait Engine: Clone {
    /// The revision of the last change.
    fn revision(&self) -> Revision;
    /// The object at `key`.
    fn get(&self, resource: &str, key: &str) -> Option<Arc<StoredObject>>;
    /// The objects whose keys start with `prefix`, now or at an earlier revision.
    fn list(&self, resource: &str, prefix: &str, at: Option<Revision>) -> Result<Listing, Expired>;
    /// Applies a batch atomically. Returns the new versions, in order.
    fn commit(&mut self, batch: Vec<Write>) -> Result<Vec<Arc<StoredObject>>, Conflict>;
    /// Up to `max` events of a resource after a revision, in order.
    fn events(&self, resource: &str, after: Revision, max: usize) -> Result<Vec<Arc<Event>>, Expired>;
    /// The objects, of any resource, that have an owner reference with this UID.
    fn dependents(&self, owner: &str) -> Vec<(Arc<str>, Arc<StoredObject>)>;
    /// The resources that have objects.
    fn resources(&self) -> Vec<Arc<str>>;
    /// Drops a resource with its objects and events, without emitting events.
    fn forget(&mut self, resource: &str);
}
