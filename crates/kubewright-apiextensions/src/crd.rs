//! Rules for writing CustomResourceDefinitions.
//!
//! A write runs [`complete`] and [`set_defaults`] after decoding, then one of the `prepare_` functions, then
//! [`validate_create`] or another `validate_` function. [`settle`] then sets the status that upstream's
//! controllers would set. [`CrdInfo`] contains what a server needs of a CRD for its registry and for
//! discovery. The rules for custom resources are in [`custom`](crate::custom); only their [`columns`] and
//! selectable fields are here.

mod approval;
pub mod columns;
mod conditions;
pub mod fieldpath;
mod info;
pub mod jsonpath;
mod naming;
mod printed;
mod schema;
mod spec;
mod strategy;
mod validate;

pub use approval::condition as approval_condition;
pub use conditions::{Condition, is_true as is_condition_true, set as set_condition};
pub use info::{CrdInfo, Names, SelectableField, Version, compare_versions, storage_version_hash};
pub use kubewright_cel::rules::{CompiledRule, Rules};
pub use naming::{Naming, names_conditions, settle};
pub use strategy::{
    FINALIZER, complete, instances_deleted, prepare_create, prepare_delete, prepare_status, prepare_update,
    set_defaults, warnings,
};
pub use validate::{validate_create, validate_status_update, validate_update};

use kubewright_apimachinery::gvk::Gvk;

/// Group, version and kind of CustomResourceDefinition.
pub const GVK: Gvk<'static> =
    Gvk { group: "apiextensions.k8s.io", version: "v1", kind: "CustomResourceDefinition" };
