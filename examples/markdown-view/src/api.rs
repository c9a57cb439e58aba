//! The kinds of this operator.

pub mod v1;
pub mod v2;
