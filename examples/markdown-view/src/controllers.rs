//! The controllers of this operator.

pub mod markdown_view;
