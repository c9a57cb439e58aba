//! The server's clock. All code reads wall-clock time through it.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// A source of wall-clock time, replaceable in tests.
pub trait Clock: Send + Sync + 'static {
    /// Microseconds since the Unix epoch.
    fn now_micros(&self) -> i64;

    /// Seconds since the Unix epoch.
    fn now(&self) -> i64 {
        self.now_micros().div_euclid(1_000_000)
    }
}

/// The system clock.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_micros(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
    }
}

/// Follows tokio's clock from a given time on: it stops and jumps with a paused runtime.
#[derive(Debug, Clone, Copy)]
pub struct TokioClock {
    start: tokio::time::Instant,
    start_micros: i64,
}

impl TokioClock {
    /// A clock that shows `micros` since the Unix epoch now. Must be called within a runtime.
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

/// A clock that moves only when [`ManualClock::advance`] is called.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// A clock that shows `micros` since the Unix epoch.
    pub fn new(micros: i64) -> Self {
        Self(AtomicI64::new(micros))
    }

    /// Advances the clock.
    pub fn advance(&self, by: std::time::Duration) {
        self.0.fetch_add(i64::try_from(by.as_micros()).unwrap_or(i64::MAX), Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now_micros(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}
