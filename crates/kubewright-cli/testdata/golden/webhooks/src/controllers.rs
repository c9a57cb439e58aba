//! Controllers of this operator.

pub mod order;
