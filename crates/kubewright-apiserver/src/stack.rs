//! Runs deeply recursive work on a larger stack.
//!
//! Schemas, CEL rules and YAML documents may nest deeper than the stack of a worker thread allows. The work
//! stays on its thread; only the stack grows.

use std::pin::pin;

/// Size of the large stack. Untouched pages cost nothing.
const LARGE: usize = 64 << 20;
/// The stack grows only if less than this remains.
const ENOUGH: usize = 32 << 20;

/// Runs `work` with a large stack.
pub(crate) fn on_large_stack<T>(work: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(ENOUGH, LARGE, work)
}

/// Polls `future` on a large stack, which is released while the future waits.
pub(crate) async fn poll_on_large_stack<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    std::future::poll_fn(|context| on_large_stack(|| future.as_mut().poll(context))).await
}
