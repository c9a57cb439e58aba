//! Wall clocks.
//!
//! Durations are measured by tokio's clock, which tests can pause. Timestamps in objects come from a [`Clock`], which
//! tests can inject. Nothing else reads a clock.

use jiff::Timestamp;

/// A source of wall-clock time.
pub trait Clock: Send + Sync + 'static {
    /// The current time.
    fn now(&self) -> Timestamp;
}

/// The system clock.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// Follows tokio's clock from a given time, so it can be paused and advanced with the runtime.
#[derive(Debug, Clone, Copy)]
pub struct TokioClock {
    start: tokio::time::Instant,
    shown: Timestamp,
}

impl TokioClock {
    /// A clock that starts at `moment`. Must be called within a tokio runtime.
    pub fn starting_at(moment: Timestamp) -> Self {
        Self { start: tokio::time::Instant::now(), shown: moment }
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        self.shown.saturating_add(self.start.elapsed()).unwrap_or(Timestamp::MAX)
    }
}
