//! The suites, one file each. A new one is a file with a `SUITE` and a line in [`SUITES`].

pub(crate) mod cluster;
pub(crate) mod custom;
pub(crate) mod dev;
pub(crate) mod envtest;
pub(crate) mod facts;
pub(crate) mod runtime;
pub(crate) mod server;

use crate::progress::Progress;
use crate::row::Row;

/// Every suite, in the order of the table.
pub(crate) const SUITES: &[Suite] =
    &[facts::SUITE, server::SUITE, custom::SUITE, runtime::SUITE, envtest::SUITE, cluster::SUITE, dev::SUITE];

/// A set of rows that are measured together.
#[derive(Debug)]
pub(crate) struct Suite {
    pub(crate) name: &'static str,
    pub(crate) run: fn(&Bench) -> anyhow::Result<Vec<Row>>,
}

/// What a suite is given.
#[derive(Debug)]
pub(crate) struct Bench {
    /// How often to measure each row.
    pub(crate) rounds: u32,
    pub(crate) progress: Progress,
}
