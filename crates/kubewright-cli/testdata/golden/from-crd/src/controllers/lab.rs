//! Controllers for the group lab.

pub mod oddity;
pub mod root;
