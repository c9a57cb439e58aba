//! The controllers of the group sales.

pub mod order;
