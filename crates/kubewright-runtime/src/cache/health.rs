//! The health of one watch: when it last received data, and since when it has been failing.
//!
//! A failure ends when a list completes, when the watch receives an event or a bookmark, or when the watch has been
//! open for [`SHORT`]: an idle watch is healthy.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::client::Error;
use crate::error::Chain;

/// A watch that ends sooner than this counts as failed, even without an error.
pub(super) const SHORT: Duration = Duration::from_secs(1);

/// A watch that has been failing for longer than this makes the manager not ready. A forbidden watch does so
/// immediately.
///
/// Retries are at most 60 seconds apart, so at least two have failed by then.
pub const WATCH_FAILURE: Duration = Duration::from_mins(2);

/// The health of one watch.
#[derive(Default)]
pub(crate) struct WatchHealth(Mutex<State>);

#[derive(Default)]
struct State {
    /// When the last list completed, or the last event or bookmark arrived.
    received: Option<Instant>,
    /// When the current watch was opened.
    opened: Option<Instant>,
    failure: Option<Failure>,
}

/// An ongoing failure of a watch.
#[derive(Clone)]
pub(crate) struct Failure {
    pub(crate) since: Instant,
    /// The last error.
    pub(crate) reason: String,
    cause: FailureCause,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FailureCause {
    Forbidden,
    /// The server does not serve the resource.
    Unserved,
    Other,
}

impl FailureCause {
    fn of(error: &Error) -> Self {
        match () {
            () if error.is_forbidden() => Self::Forbidden,
            () if error.is_not_found() => Self::Unserved,
            () => Self::Other,
        }
    }
}

impl Failure {
    /// Whether the failure makes the manager not ready.
    pub(crate) fn is_serious(&self) -> bool {
        self.cause == FailureCause::Forbidden || self.since.elapsed() > WATCH_FAILURE
    }
}

impl WatchHealth {
    /// Records that the watch is open.
    pub(crate) fn opened(&self) {
        self.state().opened = Some(Instant::now());
    }

    /// Records a complete list, an event or a bookmark.
    pub(crate) fn received(&self) {
        let mut state = self.state();
        state.received = Some(Instant::now());
        state.failure = None;
    }

    /// Records the end of a list or watch. Returns how long the watch was open.
    pub(crate) fn ended(&self) -> Option<Duration> {
        let mut state = self.state();
        let open = state.opened.take().map(|opened| opened.elapsed());
        if open.is_some_and(|open| open >= SHORT) {
            state.failure = None;
        }
        open
    }

    /// Records a failed list or watch.
    pub(crate) fn failed(&self, error: &Error) {
        self.note(Chain(error).to_string(), FailureCause::of(error));
    }

    /// Records a watch that ended without an error, but too soon.
    pub(crate) fn too_short(&self) {
        self.note("the server closes watches immediately".to_owned(), FailureCause::Other);
    }

    fn note(&self, reason: String, cause: FailureCause) {
        let mut state = self.state();
        // An optional kind may have been missing for long before its watch fails for another reason.
        let is_unserved = |cause| cause == FailureCause::Unserved;
        let ongoing = state.failure.as_ref().filter(|it| is_unserved(it.cause) == is_unserved(cause));
        let since = ongoing.map_or_else(Instant::now, |failure| failure.since);
        state.failure = Some(Failure { since, reason, cause });
    }

    /// The time since the last complete list, event or bookmark. `None` before the first list.
    pub(crate) fn age(&self) -> Option<Duration> {
        self.state().received.map(|received| received.elapsed())
    }

    /// The current failure, if any.
    pub(crate) fn failure(&self) -> Option<Failure> {
        let state = self.state();
        let open = state.opened.is_some_and(|opened| opened.elapsed() >= SHORT);
        state.failure.clone().filter(|_| !open)
    }

    /// Whether the list or watch fails because the server does not serve the resource.
    pub(crate) fn is_unserved(&self) -> bool {
        self.failure().is_some_and(|failure| failure.cause == FailureCause::Unserved)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
