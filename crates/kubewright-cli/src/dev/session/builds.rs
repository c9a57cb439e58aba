//! Builds the operator: at most one build at a time, repeated if cargo may have missed a change.

use std::time::Duration;

use anyhow::Result;
use tokio::time::Instant;

use crate::dev::builder::{Build, Builder, Built};
use crate::dev::durations::{Durations, Reason};
use crate::dev::report::Report;

pub(super) struct Builds {
    builder: Builder,
    durations: Durations,
    running: Option<Build>,
    /// When the save was detected that the build is for.
    requested: Instant,
    repeat: Repeat,
    /// When the last build ended.
    ended: Option<Instant>,
}

/// Whether to repeat a build, because cargo may have missed a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repeat {
    No,
    Wanted,
    /// This is the repeated build. Nothing is printed if it changes nothing.
    Running,
}

impl Builds {
    pub(super) fn new(builder: Builder, durations: Durations, requested: Instant) -> Self {
        Self { builder, durations, running: None, requested, repeat: Repeat::No, ended: None }
    }

    /// The operator binary that the user selected.
    pub(super) fn bin(&self) -> Option<&str> {
        self.builder.bin.as_deref()
    }

    /// Sets the arguments of `cargo build` that select the operator.
    pub(super) fn select(&mut self, selection: Vec<String>) {
        self.builder.selection = selection;
    }

    /// Sets the time of the save that the next build is for.
    pub(super) fn request(&mut self, since: Instant) {
        self.requested = since;
        self.repeat = Repeat::No;
    }

    /// Starts a build, and announces it unless it is a repeated one.
    pub(super) fn start(&mut self, reason: Reason, operator_runs: bool, report: &Report) -> Result<()> {
        if self.repeat != Repeat::Running {
            let what = self.durations.announce(&self.builder.package, reason);
            report.step("building", &what)?;
        }
        self.running = Some(self.builder.start(!operator_runs)?);
        self.builder.feed.compiling(operator_runs);
        Ok(())
    }

    pub(super) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Waits for the running build. Cancel-safe.
    pub(super) async fn finished(&mut self) -> Result<Built> {
        let Some(build) = &mut self.running else { return std::future::pending().await };
        let built = build.finish().await?;
        self.running = None;
        self.ended = Some(Instant::now());
        Ok(built)
    }

    /// When the last build ended.
    pub(super) fn ended(&self) -> Option<Instant> {
        self.ended
    }

    /// Stops a running build. Returns whether there was one.
    pub(super) async fn abandon(&mut self) -> Result<bool> {
        match self.running.take() {
            Some(build) => build.abandon().await.map(|()| true),
            None => Ok(false),
        }
    }

    /// Kills a running build.
    pub(super) fn kill(&mut self) {
        self.running = None;
    }

    /// Records the duration of a successful build.
    pub(super) fn record(&mut self, reason: Reason, took: Duration) {
        self.durations.record(reason, took);
    }

    /// The time since the save.
    pub(super) fn elapsed(&self) -> Duration {
        self.requested.elapsed()
    }

    /// Builds once more after the running build.
    pub(super) fn repeat(&mut self) {
        self.repeat = Repeat::Wanted;
    }

    /// Whether this is a repeated build.
    pub(super) fn is_repeated(&self) -> bool {
        self.repeat == Repeat::Running
    }

    /// Whether to start the repeated build now.
    pub(super) fn is_repeat_due(&mut self) -> bool {
        let is_due = self.repeat == Repeat::Wanted;
        if is_due {
            self.requested = Instant::now();
        }
        self.repeat = if is_due { Repeat::Running } else { Repeat::No };
        is_due
    }
}
