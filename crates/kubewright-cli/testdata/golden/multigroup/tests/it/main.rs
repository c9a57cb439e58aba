//! Integration tests on a control plane in the same process.

mod operator;
mod sales_order;
mod stock_warehouse;
