//! Tests of the operator, against a control plane in the same process.

mod markdown_view;
mod operator;
