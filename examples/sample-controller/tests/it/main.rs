//! Tests of the operator, against a control plane in the same process.

mod bar;
mod inventory;
mod operator;
mod role;
