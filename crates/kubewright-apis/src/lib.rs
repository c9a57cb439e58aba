//! Built-in kinds of Kubernetes and the rules for writing them.
//!
//! [`facts`] lists all built-in resources. The rules of one kind are in the folder `<group>/<kind>`, and `kinds` is
//! the table that finds them by group and kind. The other modules are stages, which look up the row of a kind: a
//! write calls [`defaults`], [`strategy`] and [`validation`], in this order. [`convert`] converts objects between
//! versions, [`table`] creates the rows of `kubectl get`, and [`openapi`] publishes the schemas.
//!
//! All functions are pure: no I/O, no clock, no randomness, no async.

pub mod admission;
pub mod convert;
pub mod cron;
pub mod defaults;
pub mod facts;
mod kinds;
pub mod openapi;
pub mod protobuf;
pub mod quota;
pub mod registry;
pub mod reset_fields;
pub mod selectable;
pub mod strategy;
pub mod table;
#[cfg(test)]
mod testing;
mod time_zone;
pub mod validation;

// One module per API group.
mod admissionregistration;
mod apiextensions;
mod apiregistration;
mod apps;
mod authorization;
mod autoscaling;
mod batch;
mod certificates;
mod coordination;
mod core;
mod discovery;
mod events;
mod flowcontrol;
mod networking;
mod node;
mod policy;
mod rbac;
mod resource;
mod scheduling;
mod storage;
