//! CustomResourceDefinitions and custom resources.
//!
//! [`crd`] has the rules for writing a CustomResourceDefinition. [`custom`] has the rules for custom
//! resources: pruning, defaulting, validation against the structural schema, and the scale subresource.
//! [`structural`] has the schema of a version, parsed once, and the forms derived from it.
//!
//! All functions are pure: no I/O, no clock, no randomness, no async.

pub mod crd;
pub mod custom;
pub mod structural;

pub use structural::Structural;
