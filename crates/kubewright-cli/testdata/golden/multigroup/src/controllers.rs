//! The controllers of this operator.

pub mod sales;
pub mod stock;
