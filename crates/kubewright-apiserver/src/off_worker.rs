//! Expensive work that must not delay other requests.
//!
//! A request runs on a worker thread of the runtime, together with connections and other requests. During
//! long-running work, another thread takes over the worker, so that these continue.

use std::pin::pin;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

/// Polls `future` so that other tasks of the worker continue on another thread. On a single-threaded runtime, which
/// has no other thread, it is polled as usual.
pub(crate) async fn poll_off_worker<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    std::future::poll_fn(|context| {
        let mut poll = || future.as_mut().poll(context);
        if is_multi_threaded() { block_in_place(poll) } else { poll() }
    })
    .await
}

fn is_multi_threaded() -> bool {
    Handle::try_current().is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread)
}
