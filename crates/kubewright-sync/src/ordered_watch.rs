//! A watch channel that wakes its receivers in the order in which they started to wait.
//!
//! The API is the one of `tokio::sync::watch`. That channel spreads its receivers over several lists and starts with a
//! random one, which reduces contention but makes the order of wake-ups random. Here there is one list.
//!
//! Invariant: a receiver is woken by every value that it has not seen, and never by one that it has.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! use kubewright_sync::ordered_watch;
//!
//! let (sender, mut receiver) = ordered_watch::channel(1);
//! let waiting = tokio::spawn(async move { receiver.wait_for(|value| *value > 2).await });
//! sender.send_replace(3);
//! assert_eq!(waiting.await.unwrap(), Ok(3));
//! # }
//! ```

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use tokio::sync::Notify;

/// Changes the value. Dropping it closes the channel.
pub struct Sender<T>(Arc<Shared<T>>);

/// Reads the value, and waits for new ones.
pub struct Receiver<T> {
    shared: Arc<Shared<T>>,
    /// The number of the last change that this receiver has seen.
    seen: u64,
}

struct Shared<T> {
    state: RwLock<State<T>>,
    changed: Notify,
}

struct State<T> {
    value: T,
    changes: u64,
    closed: bool,
}

/// A read lock on the value. Do not hold it across an await point: the sender blocks meanwhile.
pub struct Ref<'a, T>(RwLockReadGuard<'a, State<T>>);

/// The sender was dropped, and the last value has been seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the watch channel is closed")]
pub struct Closed;

/// Creates a channel. The receiver has seen the first value.
pub fn channel<T>(value: T) -> (Sender<T>, Receiver<T>) {
    let sender = Sender::new(value);
    let receiver = sender.subscribe();
    (sender, receiver)
}

impl<T> Deref for Ref<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0.value
    }
}

impl<T: fmt::Debug> fmt::Debug for Ref<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        T::fmt(self, f)
    }
}

impl<T: Default> Default for Sender<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> Sender<T> {
    /// Creates a channel without receivers.
    pub fn new(value: T) -> Self {
        let state = RwLock::new(State { value, changes: 0, closed: false });
        Self(Arc::new(Shared { state, changed: Notify::new() }))
    }

    /// The current value.
    pub fn borrow(&self) -> Ref<'_, T> {
        Ref(self.0.read())
    }

    /// Creates a receiver that has seen the current value.
    pub fn subscribe(&self) -> Receiver<T> {
        Receiver { shared: self.0.clone(), seen: self.0.read().changes }
    }

    /// Replaces the value, wakes all receivers, and returns the old value.
    pub fn send_replace(&self, value: T) -> T {
        let mut old = value;
        self.send_modify(|now| std::mem::swap(now, &mut old));
        old
    }

    /// Changes the value and wakes all receivers.
    pub fn send_modify(&self, change: impl FnOnce(&mut T)) {
        self.send_if_modified(|value| {
            change(value);
            true
        });
    }

    /// Changes the value, and wakes all receivers if `change` returns true.
    pub fn send_if_modified(&self, change: impl FnOnce(&mut T) -> bool) {
        let mut state = self.0.state.write().unwrap_or_else(PoisonError::into_inner);
        if !change(&mut state.value) {
            return;
        }
        state.changes += 1;
        drop(state);
        self.0.changed.notify_waiters();
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.0.state.write().unwrap_or_else(PoisonError::into_inner).closed = true;
        self.0.changed.notify_waiters();
    }
}

impl<T> Shared<T> {
    fn read(&self) -> RwLockReadGuard<'_, State<T>> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A clone has seen the same values as the original.
impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone(), seen: self.seen }
    }
}

impl<T> Receiver<T> {
    /// The current value. Does not mark it as seen.
    pub fn borrow(&self) -> Ref<'_, T> {
        Ref(self.shared.read())
    }

    /// The current value. Marks it as seen.
    pub fn borrow_and_update(&mut self) -> Ref<'_, T> {
        let state = self.shared.read();
        self.seen = state.changes;
        Ref(state)
    }

    /// Whether the sender was dropped.
    pub fn is_closed(&self) -> bool {
        self.shared.read().closed
    }

    /// Waits for a value that this receiver has not seen, and marks it as seen. Cancel safe.
    pub async fn changed(&mut self) -> Result<(), Closed> {
        loop {
            // Created before the check, so that no change between the check and the wait is missed.
            let change = self.shared.changed.notified();
            {
                let state = self.shared.read();
                if state.changes != self.seen {
                    self.seen = state.changes;
                    return Ok(());
                }
                if state.closed {
                    return Err(Closed);
                }
            }
            change.await;
        }
    }

    /// Waits until a value, including the current one, passes `test`, and returns a copy of it. Cancel safe.
    pub async fn wait_for(&mut self, mut test: impl FnMut(&T) -> bool) -> Result<T, Closed>
    where
        T: Clone,
    {
        loop {
            {
                let value = self.borrow_and_update();
                if test(&value) {
                    return Ok(value.clone());
                }
            }
            self.changed().await?;
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sender").field(&*self.borrow()).finish()
    }
}

impl<T: fmt::Debug> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Receiver").field(&*self.borrow()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn receivers_wake_in_the_order_in_which_they_started_to_wait() {
        // More receivers than tokio wakes under one lock.
        const RECEIVERS: usize = 100;
        let sender = Sender::new(0);
        let order = Arc::new(Mutex::new(Vec::new()));
        let waiting: Vec<_> = (0..RECEIVERS)
            .map(|number| {
                let (mut receiver, order) = (sender.subscribe(), order.clone());
                tokio::spawn(async move {
                    receiver.wait_for(|value| *value == 2).await.unwrap();
                    order.lock().unwrap().push(number);
                })
            })
            .collect();
        for value in [1, 2] {
            // tokio polls this task before all other tasks have run.
            for _ in 0..RECEIVERS {
                tokio::task::yield_now().await;
            }
            sender.send_replace(value);
        }
        for task in waiting {
            task.await.unwrap();
        }
        assert_eq!(*order.lock().unwrap(), (0..RECEIVERS).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn a_change_is_seen_once_and_an_unmodified_value_never() {
        let (sender, mut receiver) = channel(0);
        sender.send_if_modified(|_| false);
        assert!(receiver.changed().now_or_never().is_none());
        sender.send_modify(|now| *now += 1);
        assert_eq!(receiver.changed().await, Ok(()));
        assert_eq!(*receiver.borrow_and_update(), 1);
        assert!(receiver.changed().now_or_never().is_none());
        assert_eq!(sender.send_replace(7), 1);
        assert_eq!(*receiver.clone().borrow(), 7);
        assert_eq!(receiver.changed().await, Ok(()));
    }

    #[tokio::test]
    async fn dropping_the_sender_ends_every_wait_after_the_last_value() {
        let (sender, mut receiver) = channel(0);
        let (mut late, mut never) = (receiver.clone(), receiver.clone());
        let waiting = tokio::spawn(async move { never.wait_for(|value| *value == 9).await });
        tokio::task::yield_now().await;
        sender.send_replace(1);
        drop(sender);
        assert!(receiver.is_closed());
        assert_eq!(receiver.changed().await, Ok(()));
        assert_eq!(receiver.changed().await, Err(Closed));
        assert_eq!(late.wait_for(|value| *value == 1).await, Ok(1));
        assert_eq!(waiting.await.unwrap(), Err(Closed));
    }
}
