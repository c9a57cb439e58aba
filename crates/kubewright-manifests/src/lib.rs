//! Generates the manifests of a compiled operator.
//!
//! Attributes register declarations at link time ([`declare`]). The operator's program adds its controllers
//! and prints everything as JSON, without a cluster ([`inventory`]). From this, [`files`] generates the
//! manifests and [`lint`] reports problems. All functions are pure: they depend only on the declarations and
//! the files on disk.

pub mod crd;
pub mod declare;
pub mod files;
pub mod inventory;
pub mod lint;
pub mod rbac;
#[cfg(feature = "types")]
pub mod schema;
pub mod webhook;
pub mod yaml;
