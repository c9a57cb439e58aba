//! What happened in a simulation: the last lines for a failure, and a hash over all lines.

use std::collections::VecDeque;
use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use jiff::Timestamp;

/// Enough for several rotations.
const KEPT: usize = 300;

/// The steps, kills and starts of a run.
#[derive(Default)]
pub(super) struct Trace {
    lines: VecDeque<String>,
    count: u64,
    hash: DefaultHasher,
}

impl Trace {
    pub(super) fn push(&mut self, at: Timestamp, event: &str) {
        let line = format!("{at} {event}");
        line.hash(&mut self.hash);
        self.count += 1;
        if self.lines.len() == KEPT {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }

    #[track_caller]
    pub(super) fn is_same(&self, other: &Self, seed: u64) {
        for (number, (one, other)) in self.lines.iter().zip(&other.lines).enumerate() {
            assert_eq!(one, other, "seed {seed}: line {number} differs");
        }
        assert_eq!(self.count, other.count, "seed {seed}");
        assert_eq!(self.hash.finish(), other.hash.finish(), "seed {seed}");
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}
