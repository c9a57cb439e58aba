//! Delivery of an operator: container images, rendered manifests and deployments.
//!
//! The commands in [`crate::commands`] are thin wrappers around this module. Nothing here needs a container
//! runtime.

pub(crate) mod bundle;
pub(crate) mod chart;
pub(crate) mod deploy;
pub(crate) mod generated;
pub(crate) mod image;
pub(crate) mod package;
pub(crate) mod rendered;
pub(crate) mod scorecard;
