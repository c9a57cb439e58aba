//! The recorded requests, lists and watch events of a run. Checks are in `checker` and `versions`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Number of an object. Requests of different objects are checked separately.
pub(crate) type Key = usize;

/// The data of a ConfigMap. Every write has its own number, so the content identifies the version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Content {
    /// Number of the create or update.
    pub(crate) value: u64,
    /// Number of the last patch since then, or 0.
    pub(crate) patch: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) revision: u64,
    pub(crate) content: Content,
}

/// A request. `expect` is the resourceVersion of its precondition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Request {
    Create { value: u64 },
    Update { value: u64, expect: Option<u64> },
    Patch { value: u64, expect: Option<u64> },
    Delete { expect: Option<u64> },
    Get,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The object in the response of a successful read or write.
    Version(Version),
    Deleted,
    NotFound,
    AlreadyExists,
    Conflict,
    /// No response: the request took effect between start and end, or not at all.
    Unknown,
}

/// A request with its outcome. Times are those of [`Recorder::now`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Operation {
    pub(crate) key: Key,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) request: Request,
    pub(crate) outcome: Outcome,
}

/// A list of all objects.
#[derive(Debug, Clone)]
pub(crate) struct Listing {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) revision: u64,
    pub(crate) items: BTreeMap<Key, Version>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Added,
    Modified,
    Deleted,
}

/// A watch event. The version of a deletion has the last content and the revision of the deletion.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Event {
    pub(crate) kind: Kind,
    pub(crate) key: Key,
    pub(crate) version: Version,
}

/// A watch without a gap: a starting point, and the events after it.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    pub(crate) from: u64,
    /// The objects at `from`.
    pub(crate) items: BTreeMap<Key, Version>,
    pub(crate) events: Vec<Event>,
}

impl Session {
    /// The revision to resume from.
    pub(crate) fn last(&self) -> u64 {
        self.events.last().map_or(self.from, |event| event.version.revision)
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct History {
    pub(crate) keys: usize,
    pub(crate) operations: Vec<Operation>,
    pub(crate) lists: Vec<Listing>,
    pub(crate) sessions: Vec<Session>,
}

impl History {
    /// The requests of each object, in the order of their starts. A list is a read of every object.
    pub(crate) fn by_key(&self) -> Vec<Vec<Operation>> {
        let mut keys = vec![Vec::new(); self.keys];
        for operation in &self.operations {
            keys[operation.key].push(*operation);
        }
        for list in &self.lists {
            for (key, operations) in keys.iter_mut().enumerate() {
                let outcome = list.items.get(&key).map_or(Outcome::NotFound, |item| Outcome::Version(*item));
                let Listing { start, end, .. } = *list;
                operations.push(Operation { key, start, end, request: Request::Get, outcome });
            }
        }
        for operations in &mut keys {
            operations.sort_by_key(|operation| operation.start);
        }
        keys
    }
}

/// Records a history from several tasks.
pub(crate) struct Recorder {
    clock: AtomicU64,
    numbers: AtomicU64,
    history: Mutex<History>,
}

impl Recorder {
    pub(crate) fn new(keys: usize) -> Self {
        let history = Mutex::new(History { keys, ..History::default() });
        Self { clock: AtomicU64::new(1), numbers: AtomicU64::new(1), history }
    }

    /// The time: later calls return larger numbers.
    pub(crate) fn now(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    /// A number that no other write has.
    pub(crate) fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::SeqCst)
    }

    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut History) -> T) -> T {
        change(&mut self.history.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Ends the requests without a response: the server process no longer exists.
    pub(crate) fn crashed(&self) {
        let now = self.now();
        self.change(|history| {
            let open = history.operations.iter_mut().filter(|operation| operation.end == u64::MAX);
            open.for_each(|operation| operation.end = now);
        });
    }

    pub(crate) fn history(&self) -> History {
        self.change(|history| history.clone())
    }
}
