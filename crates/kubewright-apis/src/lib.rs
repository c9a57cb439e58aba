//! Kubernetes' built-in kinds: what they are, and the rules for writing them.
//!
//! [`facts`] is the table of all built-in resources. On a write of a built-in kind a server calls, in this order,
//! [`defaults`], [`strategy`] and [`validation`]; [`convert`] moves an object between versions, [`table`] makes the
//! rows that `kubectl get` prints, and [`openapi`] publishes the schemas.
//!
//! Everything is a pure function of its arguments: no I/O, no clock, no randomness, no async.

pub mod admission;
mod area;
pub mod convert;
pub mod defaults;
pub mod facts;
pub mod openapi;
pub mod protobuf;
pub mod quota;
pub mod selectable;
pub mod strategy;
pub mod table;
pub mod validation;
