//! API types of the group sales.example.com.

pub mod v1;
