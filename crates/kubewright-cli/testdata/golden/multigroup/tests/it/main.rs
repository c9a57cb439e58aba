//! Integration tests with an in-process control plane.

mod operator;
mod sales_order;
mod stock_warehouse;
