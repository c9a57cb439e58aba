//! Where objects live: the contract, and an engine in memory.
//!
//! # Contract
//!
//! 1. **One counter.** Every commit that changes something takes the next revision; a batch takes one for
//!    each of its writes, in order. Revisions never repeat and never go back.
//! 2. **Versions are immutable.** A reader that holds an [`StoredObject`] keeps what it has; nobody changes it.
//! 3. **A batch is atomic.** Either every expectation of a batch holds and all writes take effect, or none.
//! 4. **Every change is an event** of its resource, in the order of revisions, with what was there before.
//!    Events are kept in a ring that is bounded in count and in bytes; whoever asks for one that has been
//!    dropped is told so, never given a gap.
//! 5. **The past can be read** as far as the ring reaches: a list at an earlier revision is what a list gave
//!    at that time.
//! 6. **A fork is its own world.** It starts with the same contents; neither sees the other's writes.
//!
//! [`conformance`] checks the contract; a backend that passes it can take this one's place.
//!
//! [`Memory`] is pure and synchronous: no locks, no clock, no tasks. [`Store`] wraps it for a server.

pub mod conformance;
pub mod log;
mod memory;
mod store;
mod stored_object;

use std::sync::Arc;

pub use memory::Memory;
pub use store::{Durability, Recorded, Store};
pub use stored_object::{Attributes, Event, EventKind, StoredObject};

/// The counter of the whole store.
pub type Revision = u64;

/// How many events, and how many bytes of objects in them, a resource keeps for watches and old lists.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Events per resource.
    pub events: usize,
    /// Bytes of the objects in those events, per resource.
    pub bytes: usize,
}

impl Default for Limits {
    /// As many as a real server's watch cache keeps at its fullest, within 64 MiB.
    fn default() -> Self {
        Self { events: 102_400, bytes: 64 << 20 }
    }
}

/// One change to make.
#[derive(Debug)]
pub struct Write {
    /// Resource, by its name in storage (`apps/deployments`).
    pub resource: Arc<str>,
    /// `namespace/name`, or the name alone.
    pub key: Arc<str>,
    /// What must be there now.
    pub expect: Expect,
    /// What to put there.
    pub change: Change,
}

/// What a write relies on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// Nothing is there.
    Absent,
    /// The object is there, at this revision.
    At(Revision),
}

/// What a write does.
#[derive(Debug)]
pub enum Change {
    /// Puts an object. Its resourceVersion is set by the store.
    Put {
        /// The object, without `apiVersion` and `kind`. It may be
        /// [packed](kubewright_structured_merge::packed).
        object: serde_json::Value,
        /// What can be searched for without decoding it.
        attributes: Attributes,
    },
    /// Puts an object that is encoded already.
    PutText {
        /// Its JSON, without `apiVersion` and `kind`, and without the number of its resourceVersion.
        text: String,
        /// Where that number belongs.
        at: usize,
        /// What can be searched for without decoding it.
        attributes: Attributes,
    },
    /// Removes the object; this is how it looked last.
    Delete {
        /// The object, without `apiVersion` and `kind`.
        object: serde_json::Value,
        /// What can be searched for without decoding it.
        attributes: Attributes,
    },
}

/// A batch whose expectation does not hold; nothing was written.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
#[error("write {at} of the batch expected another version of {key}")]
pub struct Conflict {
    /// Position of the write in the batch.
    pub at: usize,
    /// The key.
    pub key: String,
    /// The revision that is there, if any.
    pub found: Option<Revision>,
}

/// The asked revision is older than what the ring keeps.
#[derive(Debug, Clone, Copy, thiserror::Error, PartialEq, Eq)]
#[error("revision {asked} is gone; the oldest is {oldest}")]
pub struct Expired {
    /// What was asked for.
    pub asked: Revision,
    /// The oldest revision that can be read.
    pub oldest: Revision,
}

/// The objects of a resource at one revision.
#[derive(Debug)]
pub struct Listing {
    /// In the order of their keys.
    pub items: Vec<Arc<StoredObject>>,
    /// The revision at which this is true.
    pub revision: Revision,
}

/// A store of versions. See the [module](self) for the contract.
pub trait Engine: Clone {
    /// The revision of the last change.
    fn revision(&self) -> Revision;
    /// The object at `key`.
    fn get(&self, resource: &str, key: &str) -> Option<Arc<StoredObject>>;
    /// The objects whose keys start with `prefix`, now or at an earlier revision.
    fn list(&self, resource: &str, prefix: &str, at: Option<Revision>) -> Result<Listing, Expired>;
    /// Applies a batch, all or nothing. Answers with the new versions, in order.
    fn commit(&mut self, batch: Vec<Write>) -> Result<Vec<Arc<StoredObject>>, Conflict>;
    /// Up to `max` events of a resource after a revision, in order.
    fn events(&self, resource: &str, after: Revision, max: usize) -> Result<Vec<Arc<Event>>, Expired>;
    /// The objects, of any resource, that name the owner with this uid.
    fn dependents(&self, owner: &str) -> Vec<(Arc<str>, Arc<StoredObject>)>;
    /// The resources that hold objects.
    fn resources(&self) -> Vec<Arc<str>>;
    /// Drops a resource with its objects and events, without writing events.
    fn forget(&mut self, resource: &str);
}
