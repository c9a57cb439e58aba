//! Defaulting of built-in kinds: what upstream's `SetDefaults` functions do.
//!
//! A default is set where nothing stands, never over a value, and applying twice changes nothing more. The
//! object has been decoded, so every value has its right type.

mod misc;
pub(crate) mod pods;
mod services;
mod workloads;

use serde_json::Value;

use crate::area::{Area, area};
use kubewright_apimachinery::gvk::Gvk;

/// Sets the defaults of a built-in kind.
pub fn apply(gvk: Gvk<'_>, object: &mut Value) {
    match area(gvk) {
        Area::Pods => pods::apply(gvk, object),
        Area::Workloads => workloads::apply(gvk, object),
        Area::Services => services::apply(gvk, object),
        Area::Misc => misc::apply(gvk, object),
    }
}
