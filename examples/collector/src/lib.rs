//! Collects the Pod IPs of each Deployment in a ConfigMap, and counts what triggered each reconcile.
//!
//! A controller of built-in kinds: the project defines no CRD.
//!
//! A library, so that tests can import the operator.

pub mod api;
pub mod controllers;
pub mod registry;
