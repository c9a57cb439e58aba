//! Controllers.

pub mod bar;
