//! Tests of the operator, against a control plane in the same process.

mod operator;
mod order;
