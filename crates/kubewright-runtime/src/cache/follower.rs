//! Following an informer from outside of this crate.

use std::fmt;
use std::sync::Arc;

use super::inbox::Inbox;
use super::store::Change;

/// Follows an [`Informer`](super::Informer): everything that is there, and then everything that happens.
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

    /// Everything that happened since the last call, which is waited for. `None` when the informer was stopped.
    ///
    /// Who comes late is told less often: changes of one object that nobody read are told as one, from the object
    /// as it was told last to the object as it is. An object that came and went meanwhile is told as gone. Cancelling
    /// the call loses nothing.
    pub async fn next(&mut self) -> Option<Vec<Change>> {
        loop {
            let batch = self.inbox.take(self.synced).await?;
            self.synced = batch.synced;
            if !batch.changes.is_empty() {
                return Some(batch.changes);
            }
        }
    }

    /// How many objects have changes that were not read yet.
    pub fn waiting(&self) -> usize {
        self.inbox.len()
    }
}

impl fmt::Debug for Follower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Follower").field("waiting", &self.waiting()).finish_non_exhaustive()
    }
}
