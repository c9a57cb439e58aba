//! API types.

pub mod v1alpha1;
