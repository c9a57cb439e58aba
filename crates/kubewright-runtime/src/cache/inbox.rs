//! What one follower of an informer has not read yet.
//!
//! An informer puts changes here and goes on: however slow a reader is, the watch does not wait for it. Changes of
//! one object that nobody read are joined, but its end is not joined to what came before or after: an owner that
//! lost it before it went must hear of that, and its namesake is another object. So an inbox holds at most three
//! changes per key.

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
    changes: HashMap<Key, Waiting>,
    synced: bool,
    closed: bool,
}

/// What waits for one key.
struct Waiting {
    /// A change of the object that the reader knows, and its end. Mostly nothing.
    before: Vec<Change>,
    change: Change,
}

impl Waiting {
    fn push(&mut self, later: Change) {
        match (&self.change, &later) {
            // The object that the reader knows changed, and goes.
            (Change { old: Some(_), new: Some(_), .. }, Change { new: None, .. }) => {
                self.before.push(std::mem::replace(&mut self.change, later));
            }
            // An object went, and its namesake comes.
            (Change { new: None, .. }, _) => {
                let end = std::mem::replace(&mut self.change, later);
                // Of several that came and went meanwhile, the first is the one that the reader may know.
                if self.before.iter().all(|change| change.new.is_some()) {
                    self.before.push(end);
                }
            }
            _ => self.change.then(later),
        }
    }
}

/// What was in an inbox.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// In the order in which their keys first changed.
    pub(crate) changes: Vec<Change>,
    /// Whether everything that was there at the start is in this batch or in an earlier one.
    pub(crate) synced: bool,
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
                    let waiting = order.iter().filter_map(|key| state.changes.remove(key));
                    let changes = waiting.flat_map(|it| it.before.into_iter().chain([it.change])).collect();
                    return Some(Batch { changes, synced: state.synced });
                }
                if state.closed {
                    return None;
                }
            }
            self.wake.notified().await;
        }
    }

    /// How many keys have changes that nobody read.
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

    /// What a reader is told of what happened to one object, version by version: `+1` came, `1>2` changed, `-2` went.
    async fn told(happened: &[(u64, u64)]) -> Vec<String> {
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
    async fn changes_of_one_object_are_told_as_one() {
        assert_eq!(told(&[(1, 2), (2, 3)]).await, ["1>3"]);
        assert_eq!(told(&[(0, 1), (1, 2)]).await, ["+2"]);
    }

    #[tokio::test]
    async fn the_end_of_an_object_does_not_hide_what_changed_before() {
        assert_eq!(told(&[(1, 2), (2, 3), (3, 0)]).await, ["1>3", "-3"]);
        assert_eq!(told(&[(1, 2), (2, 0), (0, 4), (4, 5), (5, 0), (0, 6)]).await, ["1>2", "-2", "+6"]);
    }

    #[tokio::test]
    async fn what_came_and_went_is_told_as_gone() {
        assert_eq!(told(&[(0, 1), (1, 0)]).await, ["-1"]);
    }

    #[tokio::test]
    async fn an_object_and_its_namesake_are_told_apart() {
        assert_eq!(told(&[(1, 0), (0, 3)]).await, ["-1", "+3"]);
        assert_eq!(told(&[(1, 0), (0, 3), (3, 4)]).await, ["-1", "+4"]);
        assert_eq!(told(&[(1, 0), (0, 3), (3, 0)]).await, ["-1", "-3"]);
        assert_eq!(told(&[(1, 0), (0, 3), (3, 0), (0, 5)]).await, ["-1", "+5"]);
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
