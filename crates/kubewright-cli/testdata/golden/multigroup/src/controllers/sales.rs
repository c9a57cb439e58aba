//! Controllers for the group sales.

pub mod order;
