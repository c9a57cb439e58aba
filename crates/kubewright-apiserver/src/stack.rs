//! Work that recurses deeper than a worker's stack allows.

/// The stack that such work gets. Pages of it that are never touched cost nothing.
const LARGE: usize = 64 << 20;

/// Does work on a thread of its own with a large stack, and waits for it.
pub(crate) fn on_large_stack<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(LARGE).spawn_scoped(scope, work);
        match thread.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(done)) => done,
            // As if it had been done here.
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(error) => panic!("no thread could be started: {error}"),
        }
    })
}
