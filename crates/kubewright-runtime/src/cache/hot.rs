//! Decoded objects that the cache keeps in addition to their JSON.
//!
//! An object is kept when it is decoded a second time while less JSON than the budget was decoded in between. So a
//! scan over more objects than fit does not evict objects that are read often. An object of a kind with indexes is kept
//! from the start: the index functions and the controllers that watch the kind read it one after the other.
//!
//! An entry that is replaced or removed frees its object at once. It counts towards the budget until it is the oldest.
//!
//! Invariant: the JSON size of the kept objects never exceeds the budget. Decoded objects are larger than their JSON (a
//! Pod about five times), so the budget should be small. All kinds of a cache share it.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// A decoded object of any type.
pub(super) type Shared = dyn Any + Send + Sync;

/// The decoded object of an entry, until it is evicted.
pub(super) struct Held(Mutex<Option<Arc<Shared>>>);

impl Held {
    pub(super) fn new(object: Arc<Shared>) -> Self {
        Self(Mutex::new(Some(object)))
    }

    /// The object, if it was not evicted.
    pub(super) fn get(&self) -> Option<Arc<Shared>> {
        self.object().clone()
    }

    fn object(&self) -> MutexGuard<'_, Option<Arc<Shared>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps repeatedly read objects decoded.
pub(crate) struct Hot {
    limit: usize,
    /// The total JSON decoded so far, in bytes.
    count: AtomicU64,
    queue: Mutex<Queue>,
}

/// The kept objects and their sizes, oldest first.
#[derive(Default)]
struct Queue {
    objects: VecDeque<(Weak<Held>, usize)>,
    bytes: usize,
}

impl Hot {
    /// Keeps objects of at most this much JSON, in bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, count: AtomicU64::new(0), queue: Mutex::default() }
    }

    pub(super) fn limit(&self) -> u64 {
        self.limit as u64
    }

    /// The JSON size of the kept objects.
    pub(crate) fn bytes(&self) -> usize {
        self.queue().bytes
    }

    /// Adds to the total of decoded JSON, and returns the new total.
    pub(super) fn decoded(&self, bytes: usize) -> u64 {
        let bytes = bytes as u64;
        self.count.fetch_add(bytes, Ordering::Relaxed) + bytes
    }

    /// Keeps an object, and evicts the oldest ones beyond the budget.
    pub(super) fn keep(&self, object: &Arc<Held>, bytes: usize) {
        let mut queue = self.queue();
        queue.objects.push_back((Arc::downgrade(object), bytes));
        queue.bytes += bytes;
        let mut evicted = Vec::new();
        while queue.bytes > self.limit {
            let Some((oldest, bytes)) = queue.objects.pop_front() else { break };
            queue.bytes -= bytes;
            evicted.push(oldest);
        }
        drop(queue);
        // Without the lock: dropping a large object takes time.
        for held in evicted.iter().filter_map(Weak::upgrade) {
            let object = held.object().take();
            drop(object);
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::super::entry::{Entry, Keep};
    use super::*;

    fn entry() -> Entry {
        let json =
            r#"{"metadata":{"name":"m","namespace":"n","uid":"u"},"data":{"a":"b"},"immutable":false}"#;
        Entry::read(json, false).unwrap()
    }

    #[test]
    fn an_object_that_is_read_repeatedly_is_decoded_only_twice() {
        let (entry, hot) = (entry(), Hot::new(10_000));
        let first: Arc<ConfigMap> = entry.decode(Keep::Hot(&hot)).unwrap();
        assert_eq!(first.data.as_ref().unwrap()["a"], "b");
        let second = entry.decode::<ConfigMap>(Keep::Hot(&hot)).unwrap();
        assert!(!Arc::ptr_eq(&first, &second));
        assert!(Arc::ptr_eq(&second, &entry.decode(Keep::Hot(&hot)).unwrap()));
        assert_eq!(hot.bytes(), entry.len());
    }

    #[test]
    fn a_new_object_is_kept_from_its_first_read() {
        let (entry, hot) = (entry(), Hot::new(10_000));
        let first: Arc<ConfigMap> = entry.decode(Keep::New(&hot)).unwrap();
        assert!(Arc::ptr_eq(&first, &entry.decode(Keep::New(&hot)).unwrap()));
        assert!(Arc::ptr_eq(&first, &entry.decode(Keep::Hot(&hot)).unwrap()));
        assert_eq!(hot.bytes(), entry.len());
    }

    #[test]
    fn an_evicted_or_replaced_object_is_freed() {
        let (first, second) = (entry(), entry());
        let hot = Hot::new(first.len());
        let read = |entry: &Entry| Arc::downgrade(&entry.decode::<ConfigMap>(Keep::New(&hot)).unwrap());
        let evicted = read(&first);
        assert!(evicted.upgrade().is_some());
        let replaced = read(&second);
        assert!(evicted.upgrade().is_none() && replaced.upgrade().is_some());
        drop(second);
        assert!(replaced.upgrade().is_none());
    }

    #[test]
    fn a_scan_over_more_objects_than_fit_keeps_none() {
        let hot = Hot::new(5_000);
        let entries: Vec<Entry> = (0..100).map(|_| entry()).collect();
        for entry in entries.iter().chain(&entries) {
            entry.decode::<ConfigMap>(Keep::Hot(&hot)).unwrap();
        }
        assert_eq!(hot.bytes(), 0);
    }

    #[test]
    fn the_budget_is_not_exceeded() {
        let hot = Hot::new(5_000);
        let entries: Vec<Entry> = (0..100).map(|_| entry()).collect();
        for entry in &entries {
            for _ in 0..3 {
                entry.decode::<ConfigMap>(Keep::Hot(&hot)).unwrap();
            }
        }
        assert!((4_900..=5_000).contains(&hot.bytes()), "{}", hot.bytes());
    }
}
