//! Controllers.

pub mod lab;
pub mod view;
