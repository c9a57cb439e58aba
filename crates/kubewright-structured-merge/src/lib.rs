//! Server-side apply and `metadata.managedFields`: which field manager owns which field of an object.
//!
//! Owns structured merge: field sets ([`Set`]), how a type merges ([`Schema`]), comparing and merging values, and the
//! managedFields of every write ([`update`], [`apply`]). The invariant: a field stays as long as a manager that applied
//! it still does, and a field that no manager applies any more is removed. Nothing here sets defaults, validates beyond
//! the shape of a value, or stores anything.
//!
//! # How a server calls it
//!
//! On create, update and patch: decode and default the object, then [`update`], then admission, validation and,
//! for updates, [`keep_times`] just before the object is stored. On apply: [`apply`] on the stored object (or
//! none), then normalise and default the result, and go on as for an update. A write through a scale
//! subresource translates the owners with [`to_scale`] before and [`from_scale`] after.
//!
//! # From the README
#![doc = include_str!("../README.md")]

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
mod structural;
mod typed;
mod updater;

pub use compare::{Comparison, compare};
pub use managed::{Entry, ManagedFields, ManagedFieldsError, Manager, Operation};
pub use manager::{ApplyError, Write, apply, keep_times, manager_name, update};
pub use merge::merge;
pub use packed::Owners;
pub use path::{Element, ElementError, Name};
pub use remove::extract;
pub use reset::Reset;
pub use scale::{ReplicasPaths, from_scale, to_scale};
pub use schema::Schema;
pub use set::{Set, path_text};
pub use structural::Structural;
pub use updater::{Conflict, ConvertError, OneVersion, Versions};

#[cfg(test)]
mod tests;
