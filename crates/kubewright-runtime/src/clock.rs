//! What time it is.
//!
//! Durations are measured by tokio's clock everywhere, which a test can pause. Timestamps that are written into
//! objects come from a [`Clock`], which a test can inject. Nothing else reads a clock.

use jiff::Timestamp;

/// Tells the time of day.
pub trait Clock: Send + Sync + 'static {
    /// Now.
    fn now(&self) -> Timestamp;
}

/// The machine's clock.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// Follows tokio's clock from a given moment: it stands still, and jumps, with a paused runtime.
#[derive(Debug, Clone, Copy)]
pub struct TokioClock {
    start: tokio::time::Instant,
    shown: Timestamp,
}

impl TokioClock {
    /// A clock that shows `moment` now. Must be called within a runtime.
    pub fn starting_at(moment: Timestamp) -> Self {
        Self { start: tokio::time::Instant::now(), shown: moment }
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        self.shown.saturating_add(self.start.elapsed()).unwrap_or(Timestamp::MAX)
    }
}
