//! Controllers.

pub mod markdown_view;
