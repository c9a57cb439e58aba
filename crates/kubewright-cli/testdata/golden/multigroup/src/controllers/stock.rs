//! The controllers of the group stock.

pub mod warehouse;
