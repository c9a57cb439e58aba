//! Types and functions shared by all Kubernetes objects.
//!
//! JSON compatible with Go, names, field errors and Status, quantities, durations and times, label and field
//! selectors, and the three patch types. Rules of specific kinds are in `kubewright-apis` (built-in kinds)
//! and `kubewright-apiextensions` (custom resources).
//!
//! All functions are deterministic: no I/O, no clock, no random numbers, no async.

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
