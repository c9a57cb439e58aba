//! Validation of built-in kinds: the rules that users meet, in upstream's order and words.
//!
//! An object has been decoded and defaulted before it comes here. Rules are checked against the whole object;
//! the list of what is broken is complete, not just the first.

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

/// Checks an object that is about to be created.
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

/// Checks an object that is about to replace `old`.
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

/// Checks an object whose `subresource` (`status`, `approval`, ...) is about to be replaced.
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

/// Checks a review, which has a spec but no name.
pub fn review(gvk: Gvk<'_>, object: &Value) -> ErrorList {
    misc::create(gvk, object)
}
