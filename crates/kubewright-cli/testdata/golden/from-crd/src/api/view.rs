//! The kinds of view.example.com.

pub mod v1;
