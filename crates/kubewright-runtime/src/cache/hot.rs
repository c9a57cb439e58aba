//! Decoded objects that the cache keeps in addition to their JSON.
//!
//! An object is kept when it is decoded a second time while less JSON than the budget was decoded in between. So a
//! scan over more objects than fit does not evict objects that are read often. An object of a kind with indexes is kept
//! from the start: the index functions and the controllers that watch the kind read it one after the other.
//!
//! Invariant: the JSON size of the kept objects never exceeds the budget. Decoded objects are larger than their JSON (a
//! Pod about five times), so the budget should be small. All kinds of a cache share it.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A decoded object of any type.
pub(super) type Shared = dyn Any + Send + Sync;

/// Keeps repeatedly read objects decoded.
pub(crate) struct Hot {
    limit: usize,
    /// The total JSON decoded so far, in bytes.
    count: AtomicU64,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    objects: VecDeque<(Arc<Shared>, usize)>,
    bytes: usize,
}

impl Hot {
    /// Keeps objects of at most this much JSON, in bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, count: AtomicU64::new(0), held: Mutex::default() }
    }

    pub(super) fn limit(&self) -> u64 {
        self.limit as u64
    }

    /// The JSON size of the kept objects.
    pub(crate) fn bytes(&self) -> usize {
        self.held().bytes
    }

    /// Adds to the total of decoded JSON, and returns the new total.
    pub(super) fn decoded(&self, bytes: usize) -> u64 {
        let bytes = bytes as u64;
        self.count.fetch_add(bytes, Ordering::Relaxed) + bytes
    }

    /// Keeps an object, and evicts the oldest ones beyond the budget.
    pub(super) fn keep(&self, object: Arc<Shared>, bytes: usize) {
        if bytes > self.limit {
            return;
        }
        let mut held = self.held();
        held.objects.push_back((object, bytes));
        held.bytes += bytes;
        let mut evicted = Vec::new();
        while held.bytes > self.limit {
            let Some(oldest) = held.objects.pop_front() else { break };
            held.bytes -= oldest.1;
            evicted.push(oldest);
        }
        drop(held);
        // Without the lock: dropping a large object takes time.
        drop(evicted);
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
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
