//! Webhooks for version v1.

pub mod markdown_view;
pub mod markdown_view_conversion;
