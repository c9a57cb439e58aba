//! Controllers for the group stock.

pub mod warehouse;
