//! Version v1 of sales.example.com.

mod order;

pub use order::*;
