//! Version v1 of view.example.com.

mod markdown_view;

pub use markdown_view::*;
