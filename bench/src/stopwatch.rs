//! Measures durations. Single-threaded work that never blocks is measured in CPU time, because other load on
//! the machine affects it less. Everything else is measured in wall time.

use std::time::{Duration, Instant};

use crate::process;

/// A running stopwatch.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stopwatch {
    Wall(Instant),
    /// The CPU time of the thread at the start.
    Thread(Duration),
}

impl Stopwatch {
    pub(crate) fn wall() -> Self {
        Self::Wall(Instant::now())
    }

    /// Measures the CPU time of this thread. Read it on the same thread.
    pub(crate) fn thread() -> Self {
        Self::Thread(process::thread_cpu_time())
    }

    pub(crate) fn elapsed(self) -> Duration {
        match self {
            Self::Wall(started) => started.elapsed(),
            Self::Thread(before) => process::thread_cpu_time().saturating_sub(before),
        }
    }
}

/// Mean CPU time of one call of `work`.
pub(crate) fn mean_of(calls: u32, mut work: impl FnMut()) -> Duration {
    let stopwatch = Stopwatch::thread();
    for _ in 0..calls {
        work();
    }
    stopwatch.elapsed() / calls
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleeping_thread_uses_wall_time_but_no_cpu_time() {
        let (wall, thread) = (Stopwatch::wall(), Stopwatch::thread());
        std::thread::park_timeout(Duration::from_millis(20));
        assert!(thread.elapsed() < wall.elapsed());
    }

    #[test]
    fn work_takes_cpu_time() {
        let work = || assert!((0..10_000_u64).map(std::hint::black_box).sum::<u64>() > 0);
        assert!(mean_of(10, work) > Duration::ZERO);
    }
}
