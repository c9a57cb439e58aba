//! Integration tests with an in-process control plane.

mod deployment;
mod explanation;
mod operator;
