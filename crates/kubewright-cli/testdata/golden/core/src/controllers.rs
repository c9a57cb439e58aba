//! Controllers of this operator.

pub mod deployment;
