//! CPU profiles: samples the stacks of all running threads with the signal `SIGPROF`.
//!
//! Invariant: one profile at a time, because the signal handler is global to the process.

use std::sync::LazyLock;
use std::time::Duration;

use pprof::protos::Message as _;
use tokio::sync::Semaphore;

/// Samples per second of CPU time, as in Go.
const FREQUENCY: i32 = 100;
/// Libraries in which the signal handler must not walk the stack.
const BLOCKED: [&str; 4] = ["libc", "libgcc", "pthread", "vdso"];

static RUNNING: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(1));

/// Why profiling failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProfileError {
    #[error("another CPU profile is in progress; try again later")]
    Busy,
    #[error("failed to start the profiler")]
    Start(#[source] pprof::Error),
    #[error("failed to read the samples")]
    Report(#[source] pprof::Error),
    #[error("the task that reads the samples failed")]
    Ended(#[source] tokio::task::JoinError),
}

/// Samples for the given time and returns the profile in pprof's format.
pub(super) async fn profile(time: Duration) -> Result<Vec<u8>, ProfileError> {
    let _running = RUNNING.try_acquire().map_err(|_| ProfileError::Busy)?;
    let guard = pprof::ProfilerGuardBuilder::default()
        .frequency(FREQUENCY)
        .blocklist(&BLOCKED)
        .build()
        .map_err(ProfileError::Start)?;
    tokio::time::sleep(time).await;
    // Symbolization is slow and reads files.
    let encoded = tokio::task::spawn_blocking(move || {
        let report = guard.report().build().map_err(ProfileError::Report)?;
        drop(guard);
        let profile = report.pprof().map_err(ProfileError::Report)?;
        Ok(profile.encode_to_vec())
    });
    encoded.await.map_err(ProfileError::Ended)?
}
