//! The kinds of sales.example.com.

pub mod v1;
