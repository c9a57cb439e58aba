//! API types of this operator.

pub mod v1;
