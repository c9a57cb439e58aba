//! The health of one watch: when it last delivered, and since when it fails.
//!
//! A failure is over when a list is complete, when the watch delivers an event or a bookmark, or when the watch has been
//! open for [`SHORT`]: a quiet watch is healthy.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::client::Error;
use crate::error::Chain;

/// A watch that ends sooner than this is a failure even if it ends without an error.
pub(super) const SHORT: Duration = Duration::from_secs(1);

/// A watch that has failed for longer than this makes the manager not ready. One that is forbidden does so at once.
///
/// Retries are at most 60 seconds apart, so a watch has failed at least twice by then.
pub const WATCH_FAILURE: Duration = Duration::from_mins(2);

/// The health of one watch.
#[derive(Default)]
pub(crate) struct WatchHealth(Mutex<State>);

#[derive(Default)]
struct State {
    /// When the last list was complete, or the last event or bookmark arrived.
    heard: Option<Instant>,
    /// When the watch was opened, if it is open.
    opened: Option<Instant>,
    failure: Option<Failure>,
}

/// Why a watch fails.
#[derive(Clone)]
pub(crate) struct Failure {
    pub(crate) since: Instant,
    /// The last error.
    pub(crate) reason: String,
    pub(crate) forbidden: bool,
}

impl Failure {
    /// Whether the failure makes the manager not ready.
    pub(crate) fn is_serious(&self) -> bool {
        self.forbidden || self.since.elapsed() > WATCH_FAILURE
    }
}

impl WatchHealth {
    /// The watch is open.
    pub(crate) fn opened(&self) {
        self.state().opened = Some(Instant::now());
    }

    /// A list is complete, or an event or a bookmark has arrived.
    pub(crate) fn heard(&self) {
        let mut state = self.state();
        state.heard = Some(Instant::now());
        state.failure = None;
    }

    /// The list or the watch has ended. Returns how long the watch was open.
    pub(crate) fn ended(&self) -> Option<Duration> {
        let mut state = self.state();
        let open = state.opened.take().map(|opened| opened.elapsed());
        if open.is_some_and(|open| open >= SHORT) {
            state.failure = None;
        }
        open
    }

    /// The list or the watch has failed.
    pub(crate) fn failed(&self, error: &Error) {
        self.note(Chain(error).to_string(), error.is_forbidden());
    }

    /// The watch has ended without an error, but too soon.
    pub(crate) fn too_short(&self) {
        self.note("the server ends each watch at once".to_owned(), false);
    }

    fn note(&self, reason: String, forbidden: bool) {
        let mut state = self.state();
        let since = state.failure.as_ref().map_or_else(Instant::now, |failure| failure.since);
        state.failure = Some(Failure { since, reason, forbidden });
    }

    /// How long ago a list was complete, or an event or a bookmark arrived. `None` before the first list.
    pub(crate) fn age(&self) -> Option<Duration> {
        self.state().heard.map(|heard| heard.elapsed())
    }

    /// Why the watch fails, if it does.
    pub(crate) fn failure(&self) -> Option<Failure> {
        let state = self.state();
        let open = state.opened.is_some_and(|opened| opened.elapsed() >= SHORT);
        state.failure.clone().filter(|_| !open)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
