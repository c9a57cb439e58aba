//! Controllers.

pub mod order;
pub mod order_backup;
