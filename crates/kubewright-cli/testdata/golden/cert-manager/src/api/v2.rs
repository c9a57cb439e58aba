//! Version v2 of sales.example.com.

mod order;

pub use order::*;
