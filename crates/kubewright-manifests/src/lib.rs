//! From a compiled operator to the manifests that it needs.
//!
//! Attributes register what they declare at link time ([`declare`]). The operator's program adds what its controllers
//! own and watch, and prints it all as data, without a cluster ([`declarations`]). From that data come the files that
//! people apply ([`files`]), and what is wrong with them ([`lint`]).
//! Everything here is a function of the declarations and of the files on disk: no cluster, no clock, no order of maps.

pub mod crd;
pub mod declarations;
pub mod declare;
pub mod files;
pub mod lint;
pub mod rbac;
#[cfg(feature = "types")]
pub mod schema;
pub mod webhook;
pub mod yaml;
