//! API types of the group lab.example.com.

pub mod v1;
