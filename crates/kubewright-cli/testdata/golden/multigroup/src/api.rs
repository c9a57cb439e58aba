//! API types of this operator.

pub mod sales;
pub mod stock;
