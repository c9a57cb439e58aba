//! Defaulting of built-in kinds, like upstream's `SetDefaults` functions.
//!
//! Defaults never overwrite a value, and defaulting is idempotent. Objects are already decoded, so every
//! value has the right type.

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
