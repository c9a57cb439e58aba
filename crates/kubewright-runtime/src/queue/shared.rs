//! The queue shared by many workers.
//!
//! [`SharedQueue`] is a lock around the [`Queue`], and a list of waiting workers. No lock is held while a waker is
//! called or a future waits. A future that is dropped at any point loses neither an item nor a wake-up. The order of
//! items is decided by [`Queue`] alone.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::PoisonError;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::metrics::Handles;
use super::sync::{Arc, Instant, Mutex, MutexGuard, Sleep, sleep_until};
use super::waiters::{Ticket, WaiterList, Wakes};
use super::{Item, Options, Queue, Taken};

/// A queue for any number of workers and sources, on tokio's clock. Clones share it.
///
/// Each method behaves as that of [`Queue`] with the same name.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use std::time::Duration;
/// use kubewright_runtime::Key;
/// use kubewright_runtime::queue::{DEFAULT_PRIORITY, Options, SharedQueue};
///
/// let queue: SharedQueue<Key, &str> = SharedQueue::new(Options::default());
/// let worker = tokio::spawn({
///     let queue = queue.clone();
///     async move {
///         let mut runs = 0;
///         while let Some(taken) = queue.take().await {
///             runs += 1;
///             // Reconcile here; the first attempt fails.
///             if taken.retries == 0 {
///                 queue.add_rate_limited(taken.item.clone(), taken.priority, "failed");
///             } else {
///                 queue.forget(&taken.item);
///                 queue.close();
///             }
///             queue.done(&taken.item);
///         }
///         runs
///     }
/// });
/// queue.add(Key::namespaced("default", "web"), DEFAULT_PRIORITY, "created");
/// assert_eq!(worker.await.unwrap(), 2);
/// # }
/// ```
pub struct SharedQueue<T: Item, C = ()>(Arc<Shared<T, C>>);

impl<T: Item, C> Clone for SharedQueue<T, C> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// What the clones of a [`SharedQueue`] share.
pub(super) struct Shared<T: Item, C> {
    state: Mutex<State<T, C>>,
    /// The start of the queue's clock.
    epoch: Instant,
    handles: Option<Handles>,
}

struct State<T: Item, C> {
    queue: Queue<T, C>,
    workers: WaiterList,
    /// Callers that wait until the queue is idle.
    idlers: Vec<(Ticket, Waker)>,
}

impl<T: Item, C: PartialEq + Send + 'static> SharedQueue<T, C> {
    /// Creates an empty queue without metrics. [`QueueMetrics::queue`](super::QueueMetrics::queue) creates one with
    /// metrics.
    pub fn new(options: Options<T>) -> Self {
        Self::measured(options, None)
    }

    pub(super) fn measured(options: Options<T>, handles: Option<Handles>) -> Self {
        let state = State { queue: Queue::new(options), workers: WaiterList::default(), idlers: Vec::new() };
        Self(Arc::new(Shared { state: Mutex::new(state), epoch: Instant::now(), handles }))
    }

    pub(super) fn shared(&self) -> &Arc<Shared<T, C>> {
        &self.0
    }

    /// Adds an item to run as soon as possible.
    pub fn add(&self, item: T, priority: i32, cause: C) {
        self.0.change(|queue, now| queue.add(item, priority, cause, now));
    }

    /// Adds many items to run as soon as possible. Atomic: workers see all of them or none.
    pub fn add_all(&self, items: impl IntoIterator<Item = (T, C)>, priority: i32) {
        self.0.change(|queue, now| {
            for (item, cause) in items {
                queue.add(item, priority, cause, now);
            }
        });
    }

    /// Adds an item to run after a delay.
    pub fn add_after(&self, item: T, priority: i32, cause: C, delay: Duration) {
        self.0.change(|queue, now| queue.add_after(item, priority, cause, delay, now));
    }

    /// Adds a failed item, counts the failure, and returns the delay.
    pub fn add_rate_limited(&self, item: T, priority: i32, cause: C) -> Duration {
        self.0.change(|queue, now| queue.add_rate_limited(item, priority, cause, now))
    }

    /// Resets the failures of an item.
    pub fn forget(&self, item: &T) {
        self.0.change(|queue, _| queue.forget(item));
    }

    /// The number of failures of an item since it was last forgotten.
    pub fn retries(&self, item: &T) -> u32 {
        self.0.lock().queue.retries(item)
    }

    /// Waits for the next item; `None` once the queue is closed.
    ///
    /// The future can be dropped at any time: an item is only handed out by being returned.
    pub async fn take(&self) -> Option<Taken<T, C>> {
        let taken = Take { shared: &self.0, ticket: None, timer: None }.await;
        if let (Some(handles), Some(taken)) = (&self.0.handles, &taken) {
            handles.taken(taken.waited);
        }
        taken
    }

    /// Ends the run of an item.
    pub fn done(&self, item: &T) {
        self.ran(self.0.change(|queue, now| queue.done(item, now)));
    }

    /// Ends the run of an item and resets its failures.
    pub fn succeeded(&self, item: &T) {
        self.ran(self.0.change(|queue, now| {
            queue.forget(item);
            queue.done(item, now)
        }));
    }

    fn ran(&self, ran: Option<Duration>) {
        if let (Some(handles), Some(ran)) = (&self.0.handles, ran) {
            handles.done(ran);
        }
    }

    /// Reverts the adds since an item was handed out. Returns false if it would not run again immediately.
    pub fn retract(&self, item: &T) -> bool {
        self.0.change(|queue, _| queue.retract(item))
    }

    /// Gives back an item until it is [released](Self::release). Returns false if it does not run.
    pub fn hold(&self, taken: Taken<T, C>) -> bool {
        self.0.change(|queue, _| queue.hold(taken))
    }

    /// Makes a held item ready. Returns false if it is not held.
    pub fn release(&self, item: &T) -> bool {
        self.0.change(|queue, now| queue.release(item, now))
    }

    /// Closes the queue. Every waiting worker gets `None`.
    pub fn close(&self) {
        self.0.change(|queue, _| queue.close());
    }

    /// Waits until no item waits, runs or is held. Delayed items do not count.
    pub async fn idle(&self) {
        let mut idler = Idler { shared: &self.0, ticket: None };
        poll_fn(|cx| idler.poll(cx)).await;
    }

    /// Calls a function with the queue and the current time of its clock. Workers wait meanwhile.
    pub fn inspect<R>(&self, look: impl FnOnce(&Queue<T, C>, Duration) -> R) -> R {
        self.0.inspect(look)
    }
}

impl<T: Item, C: PartialEq + Send + 'static> Shared<T, C> {
    pub(super) fn inspect<R>(&self, look: impl FnOnce(&Queue<T, C>, Duration) -> R) -> R {
        let mut state = self.lock();
        let now = self.now();
        state.queue.advance(now);
        let seen = look(&state.queue, now);
        self.settle(state);
        seen
    }

    fn change<R>(&self, change: impl FnOnce(&mut Queue<T, C>, Duration) -> R) -> R {
        let mut state = self.lock();
        let result = change(&mut state.queue, self.now());
        self.settle(state);
        result
    }

    fn now(&self) -> Duration {
        Instant::now().duration_since(self.epoch)
    }

    fn lock(&self) -> MutexGuard<'_, State<T, C>> {
        // Only a panic of the caller's code, in `inspect` or in the hash of an item, can poison the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the workers that the new state requires. Every change of the queue or of the waiters ends with this.
    #[expect(clippy::unused_self, reason = "the guard belongs to this lock")]
    fn settle(&self, mut guard: MutexGuard<'_, State<T, C>>) {
        let mut wake = Wakes::default();
        let state = &mut *guard;
        if state.queue.is_closed() {
            state.workers.wake_all(&mut wake);
        } else {
            state.workers.settle(state.queue.ready(), state.queue.next_at(), &mut wake);
        }
        if !state.idlers.is_empty() && state.queue.is_idle() {
            state.idlers.drain(..).for_each(|(_, waker)| wake.push(waker));
        }
        drop(guard);
        wake.wake();
    }
}

/// The future of [`SharedQueue::take`].
struct Take<'a, T: Item, C: PartialEq + Send + 'static> {
    shared: &'a Shared<T, C>,
    /// Set while it waits, or was woken and has not been polled yet.
    ticket: Option<Ticket>,
    /// Set while this worker waits for the next delayed item.
    timer: Option<Pin<Box<Sleep>>>,
}

impl<T: Item, C: PartialEq + Send + 'static> Take<'_, T, C> {
    /// Takes an item, or registers as a waiter and returns until when to sleep.
    fn next(&mut self, waker: &Waker) -> Result<Option<Taken<T, C>>, Option<Instant>> {
        let mut guard = self.shared.lock();
        let state = &mut *guard;
        if let Some(ticket) = self.ticket {
            state.workers.leave(ticket);
        }
        let taken = state.queue.next(self.shared.now());
        let result = if taken.is_some() || state.queue.is_closed() {
            self.ticket = None;
            Ok(taken)
        } else {
            let ticket = *self.ticket.get_or_insert_with(|| state.workers.ticket());
            let until = state.workers.park(ticket, waker, state.queue.next_at());
            Err(until.map(|until| self.shared.epoch + until))
        };
        self.shared.settle(guard);
        result
    }
}

impl<T: Item, C: PartialEq + Send + 'static> Future for Take<'_, T, C> {
    type Output = Option<Taken<T, C>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            let until = match self.next(cx.waker()) {
                Ok(taken) => return Poll::Ready(taken),
                Err(until) => until,
            };
            let Some(until) = until else {
                self.timer = None;
                return Poll::Pending;
            };
            let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(until)));
            if timer.deadline() != until {
                timer.as_mut().reset(until);
            }
            if timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }
}

impl<T: Item, C: PartialEq + Send + 'static> Drop for Take<'_, T, C> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            let mut state = self.shared.lock();
            state.workers.leave(ticket);
            self.shared.settle(state);
        }
    }
}

/// The future of [`SharedQueue::idle`].
struct Idler<'a, T: Item, C: PartialEq + Send + 'static> {
    shared: &'a Shared<T, C>,
    ticket: Option<Ticket>,
}

impl<T: Item, C: PartialEq + Send + 'static> Idler<'_, T, C> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut guard = self.shared.lock();
        let state = &mut *guard;
        state.queue.advance(self.shared.now());
        let ticket = *self.ticket.get_or_insert_with(|| state.workers.ticket());
        state.idlers.retain(|(other, _)| *other != ticket);
        let idle = state.queue.is_idle();
        if idle {
            self.ticket = None;
        } else {
            state.idlers.push((ticket, cx.waker().clone()));
        }
        self.shared.settle(guard);
        if idle { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl<T: Item, C: PartialEq + Send + 'static> Drop for Idler<'_, T, C> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.shared.lock().idlers.retain(|(other, _)| *other != ticket);
        }
    }
}
