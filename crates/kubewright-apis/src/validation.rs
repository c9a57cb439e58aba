//! Validation of built-in kinds, with upstream's messages in upstream's order.
//!
//! Objects are already decoded and defaulted. Returns all errors, not only the first.

pub(crate) mod label_selector;
pub mod meta;
mod misc;
pub(crate) mod pods;
mod services;
mod workloads;

use serde_json::Value;

use crate::area::{Area, area};
use kubewright_apimachinery::field::ErrorList;
use kubewright_apimachinery::gvk::Gvk;

/// Validates an object on creation.
pub fn create(gvk: Gvk<'_>, namespaced: bool, object: &Value) -> ErrorList {
    let mut errors = meta::create(gvk, namespaced, object);
    errors.extend(match area(gvk) {
        Area::Pods => pods::create(gvk, object),
        Area::Workloads => workloads::create(gvk, object),
        Area::Services => services::create(gvk, object),
        Area::Misc => misc::create(gvk, object),
    });
    errors
}

/// Validates an object that replaces `old`.
pub fn update(gvk: Gvk<'_>, namespaced: bool, new: &Value, old: &Value) -> ErrorList {
    let mut errors = meta::update(gvk, namespaced, new, old);
    errors.extend(match area(gvk) {
        Area::Pods => pods::update(gvk, new, old),
        Area::Workloads => workloads::update(gvk, new, old),
        Area::Services => services::update(gvk, new, old),
        Area::Misc => misc::update(gvk, new, old),
    });
    errors
}

/// Validates an update of a subresource such as `status` or `approval`.
pub fn update_subresource(
    gvk: Gvk<'_>,
    subresource: &str,
    namespaced: bool,
    new: &Value,
    old: &Value,
) -> ErrorList {
    let mut errors = meta::update_subresource(gvk, subresource, namespaced, new, old);
    errors.extend(match area(gvk) {
        Area::Pods => pods::update_subresource(gvk, subresource, new, old),
        Area::Workloads => workloads::update_subresource(gvk, subresource, new, old),
        Area::Services => services::update_subresource(gvk, subresource, new, old),
        Area::Misc => misc::update_subresource(gvk, subresource, new, old),
    });
    errors
}

/// Validates a review, which has a spec but no name.
pub fn review(gvk: Gvk<'_>, object: &Value) -> ErrorList {
    misc::create(gvk, object)
}
