//! Version v2 of view.example.com.

mod markdown_view;

pub use markdown_view::*;
