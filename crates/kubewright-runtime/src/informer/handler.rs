//! Event handlers, and the delivery of changes to them.
//!
//! Invariant: an object that cannot be decoded, or a panic of the handler, affects only one event.

use std::sync::Arc;

use tracing::{error, warn};

use crate::Object;
use crate::cache::{Change, Entry, Follower, Informer, Occasion};
use crate::error::Chain;
use crate::panics::{self, Panic};

/// Handles the changes of a type. Methods that are not implemented ignore their events.
///
/// A handler must not block: it adds a key to a [`WorkQueue`](crate::queue::WorkQueue), and a worker does the rest.
///
/// ```
/// use k8s_openapi::api::core::v1::{Node, Pod};
/// use kubewright_runtime::Key;
/// use kubewright_runtime::informer::EventHandler;
/// use kubewright_runtime::queue::WorkQueue;
///
/// /// Queues the node of each pod that is created or deleted.
/// struct ByNode(WorkQueue);
///
/// impl ByNode {
///     fn enqueue(&self, pod: &Pod) {
///         if let Some(node) = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) {
///             self.0.add(Key::cluster(node));
///         }
///     }
/// }
///
/// impl EventHandler<Pod> for ByNode {
///     fn on_add(&self, pod: &Pod, _is_in_initial_list: bool) {
///         self.enqueue(pod);
///     }
///
///     fn on_delete(&self, pod: &Pod) {
///         self.enqueue(pod);
///     }
/// }
/// ```
pub trait EventHandler<K>: Send + Sync + 'static {
    /// The object was created, or existed when the handler was added (`is_in_initial_list`).
    fn on_add(&self, object: &K, is_in_initial_list: bool) {
        let _ = (object, is_in_initial_list);
    }

    /// The object was changed. A resync delivers every object with equal `old` and `new`.
    fn on_update(&self, old: &K, new: &K) {
        let _ = (old, new);
    }

    /// The object was deleted, or no longer matches the selector of the cache; `object` is its last known state.
    fn on_delete(&self, object: &K) {
        let _ = object;
    }
}

/// Calls a handler until the informer stops.
pub(super) async fn deliver<K: Object>(
    informer: Arc<Informer>,
    mut follower: Follower,
    handler: impl EventHandler<K>,
) {
    while let Some(changes) = follower.next().await {
        for change in &changes {
            let call = panics::contain(|| handle::<K>(&informer, change, &handler));
            if let Err(Panic { message, at, times }) = call {
                error!(
                    kind = %informer.kind().gvk(),
                    object = %change.latest().key(),
                    panic = message,
                    at,
                    times,
                    "Event handler panicked; event dropped",
                );
            }
        }
    }
}

fn handle<K: Object>(informer: &Informer, change: &Change, handler: &impl EventHandler<K>) {
    let decode = |entry: Option<&Arc<Entry>>| match informer.decode::<K>(entry?) {
        Ok(object) => Some(object),
        Err(error) => {
            warn!(
                kind = %informer.kind().gvk(),
                object = %change.latest().key(),
                error = %Chain(&error),
                "Failed to decode object for event handler",
            );
            None
        }
    };
    if change.new.is_none() {
        if let Some(last) = decode(change.old.as_ref()) {
            handler.on_delete(&last);
        }
        return;
    }
    let Some(new) = decode(change.new.as_ref()) else { return };
    match decode(change.old.as_ref()) {
        Some(old) => handler.on_update(&old, &new),
        // Also if the old object cannot be decoded: then the handler has not seen the object yet.
        None => handler.on_add(&new, change.occasion == Occasion::Initial),
    }
}
