//! Time as the server sees it. Everything that reads a clock reads this one.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Tells the time. Injected, so that tests decide what time it is.
pub trait Clock: Send + Sync + 'static {
    /// Microseconds since 1970.
    fn now_micros(&self) -> i64;

    /// Seconds since 1970.
    fn now(&self) -> i64 {
        self.now_micros().div_euclid(1_000_000)
    }
}

/// The machine's clock.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_micros(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
    }
}

/// Follows tokio's clock from a given moment: it stands still, and jumps, with a paused runtime.
#[derive(Debug, Clone, Copy)]
pub struct TokioClock {
    start: tokio::time::Instant,
    start_micros: i64,
}

impl TokioClock {
    /// A clock that shows `micros` since 1970 now. Must be called within a runtime.
    pub fn starting_at(micros: i64) -> Self {
        Self { start: tokio::time::Instant::now(), start_micros: micros }
    }
}

impl Clock for TokioClock {
    fn now_micros(&self) -> i64 {
        let passed = i64::try_from(self.start.elapsed().as_micros()).unwrap_or(i64::MAX);
        self.start_micros.saturating_add(passed)
    }
}

/// A clock that only moves when told to.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// A clock that shows `micros` since 1970.
    pub fn new(micros: i64) -> Self {
        Self(AtomicI64::new(micros))
    }

    /// Moves the clock.
    pub fn advance(&self, by: std::time::Duration) {
        self.0.fetch_add(i64::try_from(by.as_micros()).unwrap_or(i64::MAX), Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now_micros(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}
