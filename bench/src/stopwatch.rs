//! The clocks. What runs on one thread and waits for nothing is measured in CPU time: on an idle machine that is
//! the same as wall time, and on a busy one other programs disturb it far less. All else is wall time.

use std::time::{Duration, Instant};

use crate::process;

/// A clock that runs.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stopwatch {
    Wall(Instant),
    /// CPU time of the thread when it started.
    Thread(Duration),
}

impl Stopwatch {
    pub(crate) fn wall() -> Self {
        Self::Wall(Instant::now())
    }

    /// Counts the CPU time of this thread; read it on the same one.
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

/// CPU time that one call of `work` takes, as the mean of `calls`.
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
    fn a_thread_that_waits_takes_wall_time_but_no_cpu_time() {
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
