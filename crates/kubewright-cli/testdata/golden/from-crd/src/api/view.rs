//! API types of the group view.example.com.

pub mod v1;
