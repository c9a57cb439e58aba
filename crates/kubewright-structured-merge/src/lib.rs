//! Server-side apply and `metadata.managedFields`: who owns which field of an object.
//!
//! Owns the whole of structured merge: field sets ([`Set`]), what a type merges ([`Schema`]), comparing and
//! merging values, and the bookkeeping on every write ([`update`], [`apply`]). The invariant: a field stays as
//! long as somebody who applied it still does, and what nobody wants any more goes. Nothing here sets defaults,
//! validates beyond the shape of a value, or stores anything.
//!
//! # How a server calls it
//!
//! On create, update and patch: decode and default the object, then [`update`], then admission, validation and,
//! for updates, [`keep_times`] just before the object is stored. On apply: [`apply`] on the stored object (or
//! none), then normalise and default the result, and go on as for an update. A write through a scale
//! subresource translates the owners with [`to_scale`] before and [`from_scale`] after.
//!
//! ```
//! use kubewright_structured_merge::{self as apply, OneVersion, Owners, Reset, Schema, Write};
//! use kubewright_apimachinery::types;
//! use serde_json::json;
//!
//! let schema = Schema::built_in(types::type_named("core.v1.ConfigMap").unwrap());
//! let write = Write {
//!     manager: "me",
//!     api_version: "v1",
//!     kind: "ConfigMap",
//!     subresource: "",
//!     time: "2026-01-01T00:00:00Z",
//!     versions: &OneVersion { api_version: "v1", schema },
//!     reset: &Reset::default(),
//!     owners: Owners::Json,
//! };
//! let wanted = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}});
//! let object = apply::apply(None, &wanted, false, &write)?;
//! assert_eq!(object["metadata"]["managedFields"][0]["fieldsV1"], json!({"f:data": {"f:k": {}}}));
//! # Ok::<(), apply::ApplyError>(())
//! ```

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
