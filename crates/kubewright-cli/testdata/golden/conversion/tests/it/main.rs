//! Integration tests on a control plane in the same process.

mod operator;
mod order;
mod order_conversion;
