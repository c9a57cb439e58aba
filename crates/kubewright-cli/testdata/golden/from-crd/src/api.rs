//! API types of this operator.

pub mod lab;
pub mod view;
