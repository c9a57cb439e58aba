//! The facts table: built-in resources and their types.
//!
//! `cargo xtask facts` generates the reviewed files in `facts/`. This module reads resources, columns and
//! bootstrap objects. [`kubewright_apimachinery::types`] reads the types, which are re-exported here.

mod resource;

pub use kubewright_apimachinery::types::*;
pub use resource::{
    Column, Resource, Scope, Subresource, aggregated_roles, bootstrap_objects, columns, resources,
};
