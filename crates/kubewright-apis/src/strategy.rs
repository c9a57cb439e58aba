//! Registry strategies of built-in kinds.
//!
//! Run after decoding and defaulting and before validation. They clear fields that the caller may not set,
//! keep fields of the old object, and increment the generation.

mod certificates;
mod claims;
mod generic;
pub(crate) mod pods;
mod services;
mod warnings;
mod workloads;

use serde_json::Value;

use crate::area::{Area, area};
use kubewright_apimachinery::gvk::Gvk;

pub use services::ip_families::default_ip_families as service_ip_families;
pub(crate) use services::{ip_families, service};

/// Prepares an object for creation.
pub fn prepare_create(gvk: Gvk<'_>, object: &mut Value) {
    match area(gvk) {
        Area::Pods => pods::prepare_create(gvk, object),
        Area::Workloads => workloads::prepare_create(gvk, object),
        Area::Services => services::prepare_create(gvk, object),
        Area::Other => generic::prepare_create(gvk, object),
    }
}

/// Prepares an object for replacing `old`.
pub fn prepare_update(gvk: Gvk<'_>, new: &mut Value, old: &Value) {
    match area(gvk) {
        Area::Pods => pods::prepare_update(gvk, new, old),
        Area::Workloads => workloads::prepare_update(gvk, new, old),
        Area::Services => services::prepare_update(gvk, new, old),
        Area::Other => generic::prepare_update(gvk, new, old),
    }
}

/// Prepares an update of a subresource such as `status`. Everything else is kept from `old`.
pub fn prepare_subresource(gvk: Gvk<'_>, subresource: &str, new: &mut Value, old: &Value) {
    match area(gvk) {
        Area::Pods => pods::prepare_subresource(gvk, subresource, new, old),
        Area::Workloads => workloads::prepare_subresource(gvk, subresource, new, old),
        Area::Services => services::prepare_subresource(gvk, subresource, new, old),
        Area::Other => generic::prepare_subresource(gvk, subresource, new, old),
    }
}

/// Warnings on creation (`old` is none) or update.
pub fn warnings(gvk: Gvk<'_>, new: &Value, old: Option<&Value>) -> Vec<String> {
    match area(gvk) {
        Area::Pods => pods::warnings(gvk, new, old),
        Area::Workloads => workloads::warnings(gvk, new, old),
        Area::Services => services::warnings(gvk, new, old),
        Area::Other => warnings::warnings(gvk, new, old),
    }
}
