//! What the development loop does: compile, deploy, run the operator.
//!
//! Pure: turns steps into one board entry.

use kubewright_page::model::board::{Board, Topic};
use serde::Serialize;

/// Maximum length of an error text.
const TEXT: usize = 16_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Phase {
    #[default]
    Starting,
    Compiling,
    Deploying,
    /// The operator runs.
    Running,
    /// A build or a deployment failed.
    Failed,
    /// The operator exited and will be restarted.
    Exited,
}

/// The state of the loop.
#[derive(Debug, Default, Serialize)]
pub(super) struct Build {
    phase: Phase,
    /// Start of the phase, in milliseconds since 1970.
    since: u64,
    /// Compiled and all crates.
    done: u64,
    total: u64,
    /// The crates that are being compiled.
    current: String,
    /// The first error of the compiler, or why the deployment or the operator failed.
    error: String,
    /// What happens next, or how long it took.
    note: String,
    /// Number of started operators.
    starts: u64,
    /// Whether an operator runs meanwhile.
    old_runs: bool,
}

impl Build {
    /// A build started.
    pub(super) fn compiling(&mut self, old_runs: bool, at: u64, board: &mut Board) {
        let phase = Phase::Compiling;
        *self = Self { phase, since: at, old_runs, starts: self.starts, ..Self::default() };
        self.publish(board);
    }

    /// The progress of the build.
    pub(super) fn progress(&mut self, done: u64, total: u64, current: &str, board: &mut Board) {
        if self.phase == Phase::Compiling {
            (self.done, self.total) = (done, total);
            current.clone_into(&mut self.current);
            self.publish(board);
        }
    }

    /// The build succeeded, and the operator is deployed.
    pub(super) fn deploying(&mut self, at: u64, board: &mut Board) {
        self.become_(Phase::Deploying, at);
        self.publish(board);
    }

    /// The operator runs.
    pub(super) fn running(&mut self, started: bool, note: &str, at: u64, board: &mut Board) {
        self.become_(Phase::Running, at);
        self.starts += u64::from(started);
        note.clone_into(&mut self.note);
        self.publish(board);
    }

    /// A build or deployment failed.
    pub(super) fn failed(&mut self, error: &str, note: &str, at: u64, board: &mut Board) {
        self.trouble(Phase::Failed, error, note, at, board);
    }

    /// The operator exited.
    pub(super) fn exited(&mut self, error: &str, at: u64, board: &mut Board) {
        self.old_runs = false;
        // A build that runs meanwhile stays visible; its end replaces this.
        if self.phase != Phase::Compiling {
            self.trouble(Phase::Exited, error, "", at, board);
        }
    }

    fn trouble(&mut self, phase: Phase, error: &str, note: &str, at: u64, board: &mut Board) {
        self.become_(phase, at);
        self.error = error.chars().take(TEXT).collect();
        note.clone_into(&mut self.note);
        self.publish(board);
    }

    fn become_(&mut self, phase: Phase, at: u64) {
        (self.phase, self.since) = (phase, at);
        self.error.clear();
        self.note.clear();
    }

    fn publish(&self, board: &mut Board) {
        board.put(Topic::Build, "", self);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn entry(board: &Board) -> Value {
        let batch = board.after(0, usize::MAX).expect("there is something");
        let batch: Value = serde_json::from_str(&batch.text).expect("it is JSON");
        batch["put"][0][1].clone()
    }

    #[test]
    fn a_build_has_progress_and_a_first_error() {
        let (mut build, mut board) = (Build::default(), Board::default());
        build.compiling(false, 10, &mut board);
        build.progress(142, 201, "kube-core", &mut board);
        assert_eq!((&entry(&board)["phase"], &entry(&board)["done"]), (&"compiling".into(), &142.into()));
        build.failed("error[E0308]: mismatched types", "waiting for changes", 20, &mut board);
        assert_eq!((&entry(&board)["phase"], &entry(&board)["since"]), (&"failed".into(), &20.into()));
        assert_eq!(entry(&board)["error"], "error[E0308]: mismatched types");
        build.compiling(false, 30, &mut board);
        assert_eq!((&entry(&board)["error"], &entry(&board)["done"]), (&"".into(), &0.into()));
    }

    #[test]
    fn starts_are_counted_and_an_exit_is_shown_unless_a_build_runs() {
        let (mut build, mut board) = (Build::default(), Board::default());
        build.running(true, "started", 1, &mut board);
        build.compiling(true, 2, &mut board);
        build.exited("the operator exited", 3, &mut board);
        assert_eq!(
            (&entry(&board)["phase"], &entry(&board)["old_runs"]),
            (&"compiling".into(), &true.into())
        );
        build.deploying(4, &mut board);
        build.running(true, "restarted", 5, &mut board);
        assert_eq!((&entry(&board)["phase"], &entry(&board)["starts"]), (&"running".into(), &2.into()));
        build.exited("the operator exited", 6, &mut board);
        assert_eq!(
            (&entry(&board)["phase"], &entry(&board)["error"]),
            (&"exited".into(), &"the operator exited".into())
        );
    }
}
