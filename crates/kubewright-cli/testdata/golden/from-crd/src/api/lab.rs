//! API types in the group lab.example.com.

pub mod v1;
