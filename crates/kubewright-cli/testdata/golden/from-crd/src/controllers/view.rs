//! Controllers for the group view.

pub mod markdown_view;
