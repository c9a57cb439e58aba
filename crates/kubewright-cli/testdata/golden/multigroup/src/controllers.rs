//! Controllers.

pub mod sales;
pub mod stock;
