//! What all Kubernetes objects have in common, whatever their kind.
//!
//! JSON as Go writes it, names, field errors and Status, quantities, durations and times, label and field selectors,
//! and the three kinds of patches. No kind has rules here: those of built-in kinds are in `kubewright-apis`, those of
//! custom resources in `kubewright-apiextensions`.
//!
//! Nothing here does I/O, reads a clock, draws a random number or is async: the same input gives the same output.

pub mod decode;
pub mod duration;
pub mod encode;
pub mod field;
pub mod gvk;
pub mod json;
pub mod keyed;
pub mod meta;
pub mod names;
pub mod nearest;
pub mod object;
pub mod patch;
pub mod permission;
pub mod quantity;
pub mod selector;
pub mod status;
pub mod time;
pub mod types;
pub mod webhook;
pub mod webhook_client;
