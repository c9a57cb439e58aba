//! Controllers of the group stock.

pub mod warehouse;
