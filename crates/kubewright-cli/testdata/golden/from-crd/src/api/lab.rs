//! The kinds of lab.example.com.

pub mod v1;
