//! API types.

pub mod lab;
pub mod view;
