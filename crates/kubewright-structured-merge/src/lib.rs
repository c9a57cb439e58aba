//! Server-side apply and `metadata.managedFields`: which field manager owns which field of an object.
//!
//! Owns structured merge: field sets ([`Set`]), merge strategies of types ([`Schema`]), comparing and merging
//! values, and the managedFields of every write ([`update`], [`apply`]). The invariant: an applied field
//! stays as long as at least one manager applies it, and is removed when no manager does. This crate does not
//! set defaults, validates only the shape of values, and stores nothing.
//!
//! # How a server calls it
//!
//! On create, update and patch: decode and default the object, call [`update`], run admission and validation
//! and, for updates, call [`keep_times`] just before storing the object. On apply: call [`apply`] on the
//! stored object (if any), normalise and default the result, and continue as for an update. A write through
//! the scale subresource converts the managedFields with [`to_scale`] before and [`from_scale`] after.
//!
//! # From the README
#![doc = include_str!("../README.md")]

mod atomics;
mod compare;
mod managed;
mod manager;
mod merge;
pub mod packed;
mod path;
mod reconcile;
mod remove;
mod reset;
mod scale;
mod schema;
mod set;
mod type_def;
mod typed;
mod updater;

pub use atomics::{atomics, check};
pub use compare::{Comparison, compare};
pub use managed::{Entry, ManagedFields, ManagedFieldsError, Manager, Operation};
pub use manager::{ApplyError, Write, apply, keep_times, manager_name, update};
pub use merge::merge;
pub use packed::Owners;
pub use path::{Element, ElementError, Name};
pub use remove::extract;
pub use reset::Reset;
pub use scale::{ReplicasPaths, from_scale, to_scale};
pub use schema::{Scalar, Schema};
pub use set::{Set, path_text};
pub use type_def::{FieldDef, ListDef, ListType, MapDef, TypeDef, TypeRef};
pub use updater::{Conflict, ConvertError, OneVersion, Versions};

#[cfg(test)]
mod tests;
