//! Controllers.

pub mod deployment;
