//! Expensive work that must not delay other requests.
//!
//! A request over a socket runs on a worker thread of the runtime, together with connections and other requests. During
//! long-running work, another thread takes over the worker, so that these continue.

use std::cell::Cell;
use std::pin::pin;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

thread_local! {
    /// Whether this thread polls a request over a socket. The tasks of other callers may run where a worker cannot be
    /// handed over, such as in a `LocalSet`.
    static OVER_SOCKET: Cell<bool> = const { Cell::new(false) };
}

/// Resets [`OVER_SOCKET`] when the poll ends, also by a panic.
struct Reset(bool);

impl Drop for Reset {
    fn drop(&mut self) {
        OVER_SOCKET.set(self.0);
    }
}

/// Polls `future`, which handles a request over a socket, so that [`off_worker`] has an effect in it.
pub(crate) async fn poll_over_socket<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    std::future::poll_fn(|context| {
        let _reset = Reset(OVER_SOCKET.replace(true));
        future.as_mut().poll(context)
    })
    .await
}

/// Polls `future` so that other tasks of the worker continue on another thread.
pub(crate) async fn poll_off_worker<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    std::future::poll_fn(|context| off_worker(|| future.as_mut().poll(context))).await
}

/// Runs `work` so that other tasks of the worker continue on another thread. Calls it directly outside
/// [`poll_over_socket`], and on a single-threaded runtime, which has no other thread.
pub(crate) fn off_worker<T>(work: impl FnOnce() -> T) -> T {
    OffWorker::for_request().run(work)
}

/// As [`off_worker`], for the body of a response, which is polled after its request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OffWorker {
    over_socket: bool,
}

impl OffWorker {
    /// For the request that this thread polls.
    pub(crate) fn for_request() -> Self {
        Self { over_socket: OVER_SOCKET.get() }
    }

    pub(crate) fn run<T>(self, work: impl FnOnce() -> T) -> T {
        if self.over_socket && is_multi_threaded() { block_in_place(work) } else { work() }
    }
}

fn is_multi_threaded() -> bool {
    Handle::try_current().is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread)
}
