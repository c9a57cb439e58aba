//! API types in the group stock.example.com.

pub mod v1beta1;
