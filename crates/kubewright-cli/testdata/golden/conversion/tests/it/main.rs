//! Integration tests with an in-process control plane.

mod operator;
mod order;
mod order_conversion;
