//! What the development loop reports to the page.
//!
//! Without a page, a [`Feed`] does nothing, so the loop needs no special case.

use std::fmt;
use std::sync::Arc;

use super::state::{Shared, State, now};

/// Reports to the page. Cheap to clone.
#[derive(Clone, Default)]
pub struct Feed(Option<Arc<Shared>>);

impl Feed {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self(Some(shared))
    }

    /// The start of kubectl command lines for this cluster.
    pub fn kubectl(&self, command: &str) {
        self.update(|state| {
            command.clone_into(&mut state.status.kubectl);
            state.publish_status();
        });
    }

    /// A build started.
    pub fn compiling(&self, old_runs: bool) {
        self.update(|state| state.build.compiling(old_runs, now(), &mut state.board));
    }

    /// The progress of the build.
    pub fn progress(&self, done: u64, total: u64, current: &str) {
        self.update(|state| state.build.progress(done, total, current, &mut state.board));
    }

    /// A successful build is deployed.
    pub fn deploying(&self) {
        self.update(|state| state.build.deploying(now(), &mut state.board));
    }

    /// The operator runs. `started` is false if it was not restarted.
    pub fn running(&self, started: bool, note: &str) {
        self.update(|state| state.build.running(started, note, now(), &mut state.board));
    }

    /// A build or deployment failed.
    pub fn failed(&self, error: &str, note: &str) {
        self.update(|state| state.build.failed(error, note, now(), &mut state.board));
    }

    /// The operator exited.
    pub fn exited(&self, error: &str) {
        self.update(|state| state.build.exited(error, now(), &mut state.board));
    }

    /// The operator printed a line.
    pub fn log(&self, line: &str) {
        self.update(|state| state.logs.add(line, now(), &mut state.board));
    }

    fn update(&self, report: impl FnOnce(&mut State)) {
        if let Some(shared) = &self.0 {
            shared.update(report);
        }
    }
}

impl fmt::Debug for Feed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Feed").field(&self.0.is_some()).finish()
    }
}
