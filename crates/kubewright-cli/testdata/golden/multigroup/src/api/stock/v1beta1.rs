//! Version v1beta1 of stock.example.com.

mod warehouse;

pub use warehouse::*;
