//! What one follower of an informer has not read yet.
//!
//! An informer puts changes here and goes on: however slow a reader is, the watch does not wait for it. Changes of
//! one object that nobody read are joined, so an inbox holds at most one change per object.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::store::Change;
use crate::Key;

/// Changes on their way to one reader.
#[derive(Default)]
pub(crate) struct Inbox {
    state: Mutex<State>,
    wake: Notify,
}

#[derive(Default)]
struct State {
    order: VecDeque<Key>,
    changes: HashMap<Key, Change>,
    synced: bool,
    closed: bool,
}

/// What was in an inbox.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// One change per object, in the order in which the objects first changed.
    pub(crate) changes: Vec<Change>,
    /// Whether everything that was there at the start is in this batch or in an earlier one.
    pub(crate) synced: bool,
}

impl Inbox {
    pub(crate) fn push(&self, change: Change) {
        let mut state = self.state();
        let key = change.latest().key();
        match state.changes.get_mut(key) {
            Some(waiting) => waiting.then(change),
            None => {
                let key = key.clone();
                state.order.push_back(key.clone());
                state.changes.insert(key, change);
            }
        }
        drop(state);
        self.wake.notify_one();
    }

    /// Everything that was there at the start has been put in.
    pub(crate) fn mark_synced(&self) {
        self.state().synced = true;
        self.wake.notify_one();
    }

    /// No more will come.
    pub(crate) fn close(&self) {
        self.state().closed = true;
        self.wake.notify_one();
    }

    /// Everything that waits. Waits itself if nothing does, unless the informer has just synced. `None` at the end.
    ///
    /// One reader only; cancelling it loses nothing.
    pub(crate) async fn take(&self, knows_synced: bool) -> Option<Batch> {
        loop {
            {
                let mut state = self.state();
                if !state.changes.is_empty() || (state.synced && !knows_synced) {
                    let order = std::mem::take(&mut state.order);
                    let changes = order.iter().filter_map(|key| state.changes.remove(key)).collect();
                    return Some(Batch { changes, synced: state.synced });
                }
                if state.closed {
                    return None;
                }
            }
            self.wake.notified().await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
