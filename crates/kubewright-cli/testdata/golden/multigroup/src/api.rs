//! API types.

pub mod sales;
pub mod stock;
