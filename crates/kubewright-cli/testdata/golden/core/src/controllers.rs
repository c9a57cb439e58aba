//! The controllers of this operator.

pub mod deployment;
