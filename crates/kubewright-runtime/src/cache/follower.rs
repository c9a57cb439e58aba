//! The public handle for following an informer.

use std::fmt;
use std::sync::Arc;

use super::inbox::Inbox;
use super::store::Change;

/// Follows an [`Informer`](super::Informer): yields all existing objects first, and then every change.
///
/// ```no_run
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kubewright_runtime::Cache;
///
/// # async fn example(cache: Cache) {
/// let mut follower = cache.informer::<ConfigMap>().follower();
/// while let Some(changes) = follower.next().await {
///     for change in changes {
///         println!("{:?} is now {:?}", change.old, change.new);
///     }
/// }
/// # }
/// ```
pub struct Follower {
    inbox: Arc<Inbox>,
    synced: bool,
}

impl Follower {
    pub(super) fn new(inbox: Arc<Inbox>) -> Self {
        Self { inbox, synced: false }
    }

    /// Waits for changes and returns all since the last call. `None` when the informer has stopped.
    ///
    /// Slow consumers see coalesced updates: unread changes of one object are merged into one, from the last state that
    /// was returned to the current state. An object that was created and deleted in between is reported as deleted.
    /// Cancelling the call loses no changes.
    pub async fn next(&mut self) -> Option<Vec<Change>> {
        loop {
            let batch = self.inbox.take(self.synced).await?;
            self.synced = batch.synced;
            if !batch.changes.is_empty() {
                return Some(batch.changes);
            }
        }
    }

    /// The number of objects with unread changes.
    pub fn waiting(&self) -> usize {
        self.inbox.len()
    }
}

impl fmt::Debug for Follower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Follower").field("waiting", &self.waiting()).finish_non_exhaustive()
    }
}
