//! The controllers of the group lab.

pub mod oddity;
pub mod root;
