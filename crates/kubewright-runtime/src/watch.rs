//! A value that others wait for, as tokio's `watch`, but those who wait are woken in the order in which they came.
//!
//! tokio's spreads them by lot, to keep threads apart: of two keys that wait for one version of a cache, now this and
//! now that one would run first, and the same seed would not give the same trace.
//!
//! Invariant: who saw a value is woken by every later one, and never waits for a change that was before.

use std::ops::Deref;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use tokio::sync::Notify;

/// Changes the value. It lives as long as the receivers do.
pub(crate) struct Sender<T>(Arc<Shared<T>>);

/// Waits for the value.
pub(crate) struct Receiver<T> {
    shared: Arc<Shared<T>>,
    /// The number of the last change that was seen.
    seen: u64,
}

struct Shared<T> {
    state: RwLock<State<T>>,
    changed: Notify,
}

struct State<T> {
    value: T,
    changes: u64,
}

/// The value, which cannot change meanwhile. Not to be held across an await.
pub(crate) struct Ref<'a, T>(RwLockReadGuard<'a, State<T>>);

impl<T> Deref for Ref<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0.value
    }
}

impl<T: Default> Default for Sender<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> Sender<T> {
    pub(crate) fn new(value: T) -> Self {
        let state = RwLock::new(State { value, changes: 0 });
        Self(Arc::new(Shared { state, changed: Notify::new() }))
    }

    pub(crate) fn borrow(&self) -> Ref<'_, T> {
        Ref(self.0.read())
    }

    /// Waits for changes from now on.
    pub(crate) fn subscribe(&self) -> Receiver<T> {
        Receiver { shared: self.0.clone(), seen: self.0.read().changes }
    }

    /// Changes the value, and wakes those who wait.
    pub(crate) fn send_modify(&self, change: impl FnOnce(&mut T)) {
        self.send_if_modified(|value| {
            change(value);
            true
        });
    }

    /// The same if `change` says so.
    pub(crate) fn send_if_modified(&self, change: impl FnOnce(&mut T) -> bool) {
        let mut state = self.0.state.write().unwrap_or_else(PoisonError::into_inner);
        if !change(&mut state.value) {
            return;
        }
        state.changes += 1;
        drop(state);
        self.0.changed.notify_waiters();
    }
}

impl<T> Shared<T> {
    fn read(&self) -> RwLockReadGuard<'_, State<T>> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Receiver<T> {
    pub(crate) fn borrow(&self) -> Ref<'_, T> {
        Ref(self.shared.read())
    }

    /// The value, which counts as seen.
    pub(crate) fn borrow_and_update(&mut self) -> Ref<'_, T> {
        let state = self.shared.read();
        self.seen = state.changes;
        Ref(state)
    }

    /// Waits for a value that was not seen yet. Cancelling it loses nothing.
    pub(crate) async fn changed(&mut self) {
        loop {
            // Before looking: who waits from here on is woken.
            let change = self.shared.changed.notified();
            let changes = self.shared.read().changes;
            if changes != self.seen {
                self.seen = changes;
                return;
            }
            change.await;
        }
    }

    /// Waits for a value of which something is so, and gives it.
    pub(crate) async fn wait_for(&mut self, mut so: impl FnMut(&T) -> bool) -> T
    where
        T: Clone,
    {
        loop {
            {
                let value = self.borrow_and_update();
                if so(&value) {
                    return value.clone();
                }
            }
            self.changed().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn those_who_wait_are_woken_in_their_order() {
        let sender = Sender::new(0);
        let order = Arc::new(Mutex::new(Vec::new()));
        let waiting: Vec<_> = (0..20)
            .map(|number| {
                let (mut receiver, order) = (sender.subscribe(), order.clone());
                tokio::spawn(async move {
                    receiver.wait_for(|value| *value == 2).await;
                    order.lock().unwrap().push(number);
                })
            })
            .collect();
        for value in [1, 2] {
            tokio::task::yield_now().await;
            sender.send_modify(|now| *now = value);
        }
        for task in waiting {
            task.await.unwrap();
        }
        assert_eq!(*order.lock().unwrap(), (0..20).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn a_change_is_seen_once_and_one_that_is_none_never() {
        let sender = Sender::<i32>::default();
        let mut receiver = sender.subscribe();
        sender.send_if_modified(|_| false);
        assert!(receiver.changed().now_or_never().is_none());
        sender.send_modify(|now| *now += 1);
        receiver.changed().await;
        assert_eq!(*receiver.borrow_and_update(), 1);
        assert!(receiver.changed().now_or_never().is_none());
        sender.send_modify(|now| *now += 1);
        assert_eq!(*sender.borrow(), 2);
        receiver.changed().await;
    }
}
