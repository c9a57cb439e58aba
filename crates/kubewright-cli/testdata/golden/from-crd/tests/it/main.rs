//! Integration tests on a control plane in the same process.

mod lab_oddity;
mod lab_root;
mod operator;
mod view_markdown_view;
