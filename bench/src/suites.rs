//! The suites, one file each. To add one, write a file with a `SUITE` and add it to [`SUITES`].

pub(crate) mod cluster;
pub(crate) mod custom;
pub(crate) mod delivery;
pub(crate) mod dev;
pub(crate) mod envtest;
pub(crate) mod facts;
pub(crate) mod hostile;
pub(crate) mod page;
pub(crate) mod runtime;
pub(crate) mod server;
pub(crate) mod webhooks;

use crate::progress::Progress;
use crate::row::Row;

/// Every suite, in the order of the table.
pub(crate) const SUITES: &[Suite] = &[
    facts::SUITE,
    server::SUITE,
    hostile::SUITE,
    custom::SUITE,
    runtime::SUITE,
    webhooks::SUITE,
    envtest::SUITE,
    cluster::SUITE,
    dev::SUITE,
    page::SUITE,
    delivery::SUITE,
];

/// A set of rows that are measured together.
#[derive(Debug)]
pub(crate) struct Suite {
    pub(crate) name: &'static str,
    pub(crate) run: fn(&Bench) -> anyhow::Result<Vec<Row>>,
}

/// Options and progress output of a suite.
#[derive(Debug)]
pub(crate) struct Bench {
    /// The number of measurements per row.
    pub(crate) rounds: u32,
    pub(crate) progress: Progress,
}
