//! The unread changes of one follower of an informer.
//!
//! The informer never waits for a reader. Unread changes of one object are merged. A deletion is not merged with
//! earlier or later changes: an owner that lost the object before the deletion must be reconciled, and an object
//! recreated under the same name is a different object. So an inbox holds at most three changes per key.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::store::Change;
use crate::Key;

/// The queue of changes to one reader.
#[derive(Default)]
pub(crate) struct Inbox {
    state: Mutex<State>,
    wake: Notify,
}

#[derive(Default)]
struct State {
    order: VecDeque<Key>,
    changes: HashMap<Key, Waiting>,
    synced: bool,
    relisted: bool,
    closed: bool,
}

/// The unread changes of one key.
struct Waiting {
    /// An update and a deletion that precede `change`. Usually empty.
    before: Vec<Change>,
    change: Change,
}

impl Waiting {
    fn push(&mut self, later: Change) {
        match (&self.change, &later) {
            // An update of an object the reader knows, then its deletion.
            (Change { old: Some(_), new: Some(_), .. }, Change { new: None, .. }) => {
                self.before.push(std::mem::replace(&mut self.change, later));
            }
            // A deletion, then an object recreated under the same name.
            (Change { new: None, .. }, _) => {
                let end = std::mem::replace(&mut self.change, later);
                // Of several deletions, keep the first: the reader may know that object.
                if self.before.iter().all(|change| change.new.is_some()) {
                    self.before.push(end);
                }
            }
            _ => self.change.then(later),
        }
    }
}

/// The changes taken from an inbox.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// Ordered by each key's first change.
    pub(crate) changes: Vec<Change>,
    /// Whether all initial objects are in this batch or an earlier one.
    pub(crate) synced: bool,
    /// Whether the informer has listed again since the last batch. Objects that were created and deleted before the list
    /// are in no batch.
    pub(crate) relisted: bool,
}

impl Inbox {
    pub(crate) fn push(&self, change: Change) {
        let mut state = self.state();
        let key = change.latest().key();
        if let Some(waiting) = state.changes.get_mut(key) {
            waiting.push(change);
        } else {
            let key = key.clone();
            state.order.push_back(key.clone());
            state.changes.insert(key, Waiting { before: Vec::new(), change });
        }
        drop(state);
        self.wake.notify_one();
    }

    /// Marks that all initial objects have been added.
    pub(crate) fn mark_synced(&self) {
        self.state().synced = true;
        self.wake.notify_one();
    }

    /// Marks that the informer has listed again.
    pub(crate) fn mark_relisted(&self) {
        self.state().relisted = true;
        self.wake.notify_one();
    }

    /// Marks that no more changes follow.
    pub(crate) fn close(&self) {
        self.state().closed = true;
        self.wake.notify_one();
    }

    /// Takes all changes. Waits if there are none, unless the informer has just synced or listed again. `None` after the
    /// last change of a closed inbox.
    ///
    /// Supports one reader. Cancelling it loses no changes.
    pub(crate) async fn take(&self, knows_synced: bool) -> Option<Batch> {
        loop {
            {
                let mut state = self.state();
                if !state.changes.is_empty() || (state.synced && !knows_synced) || state.relisted {
                    let relisted = std::mem::take(&mut state.relisted);
                    let order = std::mem::take(&mut state.order);
                    let waiting = order.iter().filter_map(|key| state.changes.remove(key));
                    let changes = waiting.flat_map(|it| it.before.into_iter().chain([it.change])).collect();
                    return Some(Batch { changes, synced: state.synced, relisted });
                }
                if state.closed {
                    return None;
                }
            }
            self.wake.notified().await;
        }
    }

    /// The number of keys with unread changes.
    pub(crate) fn len(&self) -> usize {
        self.state().changes.len()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::entry::Entry;
    use super::super::store::{Occasion, Removal};
    use super::*;

    /// What a reader gets for a sequence of versions of one object: `+1` created, `1>2` updated, `-2` deleted.
    async fn read(happened: &[(u64, u64)]) -> Vec<String> {
        let entry = |version: u64| {
            let json = format!(r#"{{"metadata":{{"name":"a","resourceVersion":"{version}"}}}}"#);
            (version > 0).then(|| Arc::new(Entry::read(&json, false).unwrap()))
        };
        let inbox = Inbox::default();
        for (old, new) in happened {
            let removal = (*new == 0).then_some(Removal::Deleted);
            inbox.push(Change { old: entry(*old), new: entry(*new), occasion: Occasion::Event, removal });
        }
        assert_eq!(inbox.len(), 1);
        let batch = inbox.take(true).await.unwrap();
        let words = batch.changes.iter().map(|change| match (&change.old, &change.new) {
            (None, Some(new)) => format!("+{}", new.version()),
            (Some(old), Some(new)) => format!("{}>{}", old.version(), new.version()),
            (Some(old), None) => format!("-{}", old.version()),
            (None, None) => "?".to_owned(),
        });
        words.collect()
    }

    #[tokio::test]
    async fn changes_of_one_object_are_merged() {
        assert_eq!(read(&[(1, 2), (2, 3)]).await, ["1>3"]);
        assert_eq!(read(&[(0, 1), (1, 2)]).await, ["+2"]);
    }

    #[tokio::test]
    async fn a_deletion_does_not_hide_an_earlier_update() {
        assert_eq!(read(&[(1, 2), (2, 3), (3, 0)]).await, ["1>3", "-3"]);
        assert_eq!(read(&[(1, 2), (2, 0), (0, 4), (4, 5), (5, 0), (0, 6)]).await, ["1>2", "-2", "+6"]);
    }

    #[tokio::test]
    async fn an_object_created_and_deleted_unread_is_reported_as_deleted() {
        assert_eq!(read(&[(0, 1), (1, 0)]).await, ["-1"]);
    }

    #[tokio::test]
    async fn a_recreated_object_is_a_different_object() {
        assert_eq!(read(&[(1, 0), (0, 3)]).await, ["-1", "+3"]);
        assert_eq!(read(&[(1, 0), (0, 3), (3, 4)]).await, ["-1", "+4"]);
        assert_eq!(read(&[(1, 0), (0, 3), (3, 0)]).await, ["-1", "-3"]);
        assert_eq!(read(&[(1, 0), (0, 3), (3, 0), (0, 5)]).await, ["-1", "+5"]);
    }

    #[tokio::test]
    async fn a_closed_inbox_is_read_to_its_end() {
        let inbox = Inbox::default();
        inbox.mark_synced();
        inbox.close();
        assert!(inbox.take(false).await.unwrap().synced);
        assert!(inbox.take(true).await.is_none());
    }
}
