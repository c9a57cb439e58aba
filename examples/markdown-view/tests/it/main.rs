//! Tests of the operator, against a control plane in the same process.

mod markdown_view;
mod markdown_view_conversion;
mod markdown_view_v1_webhook;
mod operator;
