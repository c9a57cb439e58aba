//! Integration tests with an in-process control plane.

mod markdown_view;
mod markdown_view_conversion;
mod markdown_view_v1_webhook;
mod operator;
