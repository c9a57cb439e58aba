//! Runs deeply recursive work on a larger stack.
//!
//! Schemas, CEL rules and YAML documents nest deeper than the stack of a worker thread allows. The work stays on its
//! thread: only the stack grows.

use std::pin::pin;

/// The size of the stack that the work gets. Pages of it that are never touched cost nothing.
const LARGE: usize = 64 << 20;
/// A stack that still has this much room is not replaced.
const ENOUGH: usize = 32 << 20;

/// Runs `work` with a large stack.
pub(crate) fn on_large_stack<T>(work: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(ENOUGH, LARGE, work)
}

/// Polls `future` with a large stack. While it waits, the stack is given back.
pub(crate) async fn poll_on_large_stack<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    std::future::poll_fn(|context| on_large_stack(|| future.as_mut().poll(context))).await
}
