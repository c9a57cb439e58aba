//! The server side of the page: bounded state from records, objects and log lines, published as numbered entries.
//!
//! Pure: no I/O and no clock. `kubewright dev` and the page of a manager feed it and serve its entries.

pub mod board;
pub mod history;
pub mod logs;
pub mod objects;
pub mod readiness;
pub mod records;
pub mod redact;
pub mod references;
pub mod reviews;
pub mod status;
pub mod system_objects;
pub mod why;
pub mod work;

/// How much is kept. The oldest entries are dropped first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Number of reconciles.
    pub reconciles: usize,
    /// Number of API requests per reconcile; others are counted.
    pub calls: usize,
    /// Number of webhook reviews.
    pub reviews: usize,
    /// Number of log lines.
    pub lines: usize,
    /// Number of observed writes.
    pub writes: usize,
    /// Number of objects. Others are not shown, and the page reports it.
    pub objects: usize,
}

impl Limits {
    /// For `kubewright dev`, on the developer's machine.
    pub const DEV: Self =
        Self { reconciles: 2_000, calls: 100, reviews: 1_000, lines: 2_000, writes: 10_000, objects: 20_000 };

    /// For a manager in a cluster, whose container has a memory limit.
    pub const MANAGER: Self =
        Self { reconciles: 500, calls: 20, reviews: 200, lines: 500, writes: 2_000, objects: 5_000 };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEV
    }
}
