//! CustomResourceDefinitions and custom resources.
//!
//! [`crd`] has the rules for writing a CustomResourceDefinition. [`custom`] has the rules for custom
//! resources: pruning, defaulting, validation against the structural schema, and the scale subresource.
//!
//! All functions are pure: no I/O, no clock, no randomness, no async.

pub mod crd;
pub mod custom;
