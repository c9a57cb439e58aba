//! The kinds of stock.example.com.

pub mod v1beta1;
