//! Integration tests on a control plane in the same process.

mod operator;
mod pod_v1_webhook;
