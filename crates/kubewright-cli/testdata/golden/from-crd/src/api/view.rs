//! API types in the group view.example.com.

pub mod v1;
