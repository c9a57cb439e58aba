//! Controllers of this operator.

pub mod lab;
pub mod view;
