//! The facts table: which built-in resources there are, and their types.
//!
//! The texts in `facts/` are derived by `cargo xtask facts` and reviewed. This module reads the rows of resources,
//! columns and bootstrap objects; the types themselves are read by [`kubewright_apimachinery::types`] and re-exported,
//! so that users of the table need one import.

mod resource;

pub use kubewright_apimachinery::types::*;
pub use resource::{
    Column, Resource, Scope, Subresource, aggregated_roles, bootstrap_objects, columns, resources,
};
