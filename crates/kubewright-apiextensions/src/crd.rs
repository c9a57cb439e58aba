//! CustomResourceDefinitions: the objects that define resources, not the resources they define.
//!
//! A write of a definition goes through [`complete`] and [`set_defaults`] after decoding, then one of the
//! `prepare_` functions, then [`validate_create`] or its like; [`settle`] then does what upstream leaves to
//! controllers. [`Definition`] is what a server needs of a definition for its registry and discovery. The rules for
//! instances are in [`custom`](crate::custom); here are only their [`columns`] and selectable fields.

mod approval;
pub mod columns;
mod conditions;
mod definition;
pub mod fieldpath;
pub mod jsonpath;
mod naming;
mod printed;
mod schema;
mod sha256;
mod spec;
mod strategy;
mod validate;

pub use approval::condition as approval_condition;
pub use conditions::{Condition, is_true as is_condition_true, set as set_condition};
pub use definition::{Definition, Names, SelectableField, Version, compare_versions, storage_version_hash};
pub use kubewright_cel::rules::{CompiledRule, Rules};
pub use naming::{Naming, names_conditions, settle};
pub use strategy::{
    FINALIZER, complete, instances_deleted, prepare_create, prepare_delete, prepare_status, prepare_update,
    set_defaults, warnings,
};
pub use validate::{validate_create, validate_status_update, validate_update};

use kubewright_apimachinery::gvk::Gvk;

/// The kind of definitions.
pub const GVK: Gvk<'static> =
    Gvk { group: "apiextensions.k8s.io", version: "v1", kind: "CustomResourceDefinition" };
