//! Built-in kinds of Kubernetes and the rules for writing them.
//!
//! [`facts`] lists all built-in resources. A write of a built-in kind calls [`defaults`], [`strategy`] and
//! [`validation`], in this order. [`convert`] converts objects between versions, [`table`] creates the rows
//! of `kubectl get`, and [`openapi`] publishes the schemas.
//!
//! All functions are pure: no I/O, no clock, no randomness, no async.

pub mod admission;
mod area;
pub mod convert;
pub mod cron;
pub mod defaults;
pub mod facts;
pub mod openapi;
pub mod protobuf;
pub mod quota;
pub mod reset_fields;
pub mod selectable;
pub mod strategy;
pub mod table;
mod time_zone;
pub mod validation;
