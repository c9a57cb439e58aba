//! CustomResourceDefinitions and custom resources.
//!
//! [`crd`] has the rules for writing a CustomResourceDefinition. [`custom`] has the rules for the objects of the kinds
//! that it defines: pruning, defaulting, validation against the structural schema, and the `scale` subresource.
//!
//! Everything is a pure function of its arguments: no I/O, no clock, no randomness, no async.

pub mod crd;
pub mod custom;
