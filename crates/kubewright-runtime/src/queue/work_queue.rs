//! The work queue for a control loop without a manager.
//!
//! Owns [`WorkQueue`], a [`SharedQueue`] without priorities and causes, and [`Processing`], the item that a worker has.

use std::fmt;
use std::ops::Deref;
use std::time::Duration;

use super::{DEFAULT_PRIORITY, Item, Options, SharedQueue};
use crate::Key;

/// The work queue of client-go (`workqueue.TypedRateLimitingInterface`): deduplicated, delayed and rate-limited. Clones
/// share it.
///
/// It has the [properties](super) of the queue that controllers use: an item is never processed by two workers, an item
/// that is added while it is processed is processed once more, and items of different namespaces take turns.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use kubewright_runtime::Key;
/// use kubewright_runtime::queue::WorkQueue;
///
/// async fn sync(key: &Key, attempt: u32) -> Result<(), String> {
///     if attempt == 0 { Err(format!("{key} is not ready")) } else { Ok(()) }
/// }
///
/// let queue = WorkQueue::new();
/// let web = Key::namespaced("default", "web");
/// queue.add(web.clone());
/// queue.add(web.clone()); // deduplicated
/// assert_eq!(queue.len(), 1);
///
/// for attempt in 0..2 {
///     let item = queue.get().await.expect("the queue is open");
///     match sync(&item, attempt).await {
///         Ok(()) => queue.forget(&item),
///         Err(_) => {
///             queue.add_rate_limited(item.clone());
///         }
///     }
///     // Dropping the item ends its processing, as `defer queue.Done(item)` does in Go.
/// }
/// assert_eq!(queue.num_requeues(&web), 0);
/// queue.shut_down();
/// assert!(queue.get().await.is_none());
/// # }
/// ```
///
/// [`Options`] set the delay of retries. This is the default limiter of client-go:
///
/// ```
/// use kubewright_runtime::queue::{Backoff, BucketLimiter, Limiter, MaxOf, Options, RateLimit, WorkQueue};
///
/// let limiter = MaxOf(Backoff::default(), BucketLimiter::new(RateLimit::client_go()));
/// let options = Options { rate_limiter: Some(Limiter::new(limiter)), ..Options::default() };
/// let queue: WorkQueue = WorkQueue::with_options(options);
/// # assert!(queue.is_empty());
/// ```
pub struct WorkQueue<T: Item = Key>(SharedQueue<T>);

impl<T: Item> WorkQueue<T> {
    /// Creates an empty queue with exponential backoff per item.
    pub fn new() -> Self {
        Self::with_options(Options::default())
    }

    /// Creates an empty queue with options.
    pub fn with_options(options: Options<T>) -> Self {
        Self(SharedQueue::new(options))
    }

    /// Adds an item. Does nothing if it already waits.
    pub fn add(&self, item: T) {
        self.0.add(item, DEFAULT_PRIORITY, ());
    }

    /// Adds an item after a delay.
    pub fn add_after(&self, item: T, delay: Duration) {
        self.0.add_after(item, DEFAULT_PRIORITY, (), delay);
    }

    /// Adds a failed item after the delay of its rate limiter, and returns the delay.
    pub fn add_rate_limited(&self, item: T) -> Duration {
        self.0.add_rate_limited(item, DEFAULT_PRIORITY, ())
    }

    /// Resets the failures of an item, after it succeeded or is not retried.
    pub fn forget(&self, item: &T) {
        self.0.forget(item);
    }

    /// The number of failures of an item since it was last forgotten.
    pub fn num_requeues(&self, item: &T) -> u32 {
        self.0.retries(item)
    }

    /// Waits for the next item; `None` after [`shut_down`](Self::shut_down). Dropping the future loses no item.
    pub async fn get(&self) -> Option<Processing<T>> {
        let taken = self.0.take().await?;
        Some(Processing { item: taken.item, queue: self.0.clone() })
    }

    /// The number of waiting items, without delayed ones.
    pub fn len(&self) -> usize {
        self.0.inspect(|queue, _| queue.len())
    }

    /// Whether no item waits. Delayed items do not count.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Closes the queue: workers get `None`, and later adds are ignored. Waiting items are dropped; the first list of the
    /// next start adds them again.
    pub fn shut_down(&self) {
        self.0.close();
    }

    /// Closes the queue, and waits until no item is being processed.
    pub async fn shut_down_with_drain(&self) {
        self.0.close();
        self.0.idle().await;
    }
}

impl<T: Item> Default for WorkQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Item> Clone for WorkQueue<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// For a queue with metrics, from [`QueueMetrics::queue`](super::QueueMetrics::queue).
impl<T: Item> From<SharedQueue<T>> for WorkQueue<T> {
    fn from(queue: SharedQueue<T>) -> Self {
        Self(queue)
    }
}

impl<T: Item> fmt::Debug for WorkQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkQueue").field("len", &self.len()).finish_non_exhaustive()
    }
}

/// An item that a worker processes. No other worker gets it before this is dropped, even if the worker panics.
#[must_use = "dropping the item ends its processing"]
pub struct Processing<T: Item> {
    item: T,
    queue: SharedQueue<T>,
}

impl<T: Item> Processing<T> {
    /// Ends the processing, as dropping it does. If the item was added meanwhile, it is handed out again.
    pub fn done(self) {}
}

impl<T: Item> Deref for Processing<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.item
    }
}

impl<T: Item> Drop for Processing<T> {
    fn drop(&mut self) {
        self.queue.done(&self.item);
    }
}

impl<T: Item + fmt::Debug> fmt::Debug for Processing<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Processing").field(&self.item).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn web() -> Key {
        Key::namespaced("default", "web")
    }

    #[tokio::test(start_paused = true)]
    async fn an_item_is_not_handed_out_again_before_it_is_dropped() {
        let queue = WorkQueue::new();
        queue.add(web());
        let item = queue.get().await.unwrap();
        queue.add(web());
        let early = tokio::time::timeout(Duration::from_secs(1), queue.get()).await;
        assert!(early.is_err(), "{early:?}");
        drop(item);
        assert_eq!(*queue.get().await.unwrap(), web());
    }

    #[tokio::test(start_paused = true)]
    async fn a_panicking_worker_does_not_keep_its_item() {
        let queue = WorkQueue::new();
        queue.add(web());
        let worker = tokio::spawn({
            let queue = queue.clone();
            async move {
                let item = queue.get().await.unwrap();
                queue.add_rate_limited(item.clone());
                panic!("{item:?}");
            }
        });
        assert!(worker.await.unwrap_err().is_panic());
        assert_eq!(*queue.get().await.unwrap(), web());
        assert_eq!(queue.num_requeues(&web()), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn draining_waits_for_running_items_only() {
        let queue = WorkQueue::new();
        queue.add(web());
        let item = queue.get().await.unwrap();
        queue.add(Key::namespaced("default", "db"));
        let drained = tokio::time::timeout(Duration::from_secs(1), queue.shut_down_with_drain()).await;
        assert!(drained.is_err());
        item.done();
        queue.shut_down_with_drain().await;
        assert!(queue.get().await.is_none());
    }
}
