//! API types.

pub mod v1;
