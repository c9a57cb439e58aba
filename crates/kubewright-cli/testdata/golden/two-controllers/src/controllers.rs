//! Controllers of this operator.

pub mod order;
pub mod order_backup;
