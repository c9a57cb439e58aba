//! Integration tests with an in-process control plane.

mod lab_oddity;
mod lab_root;
mod operator;
mod view_markdown_view;
