//! API types in the group sales.example.com.

pub mod v1;
