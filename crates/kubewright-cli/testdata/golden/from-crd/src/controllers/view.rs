//! Controllers of the group view.

pub mod markdown_view;
