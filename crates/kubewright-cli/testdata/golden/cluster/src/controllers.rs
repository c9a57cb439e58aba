//! Controllers.

pub mod order;
