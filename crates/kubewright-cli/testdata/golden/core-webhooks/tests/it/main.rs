//! Integration tests with an in-process control plane.

mod operator;
mod pod_v1_webhook;
