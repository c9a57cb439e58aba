//! Synchronization primitives that wake tasks in a fixed order.
//!
//! The API server and the runtime share them, so that a test with a fixed seed and a paused clock makes the same
//! requests in the same order every time. This crate knows nothing about Kubernetes.

pub mod ordered_watch;
