//! Controllers of the group sales.

pub mod order;
