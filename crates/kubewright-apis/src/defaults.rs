//! Defaulting of built-in kinds, like upstream's `SetDefaults` functions.
//!
//! Defaults never overwrite a value, and defaulting is idempotent. Objects are already decoded, so every
//! value has the right type.

mod admission;
mod core;
mod flowcontrol;
pub(crate) mod pods;
mod rbac;
mod resource;
mod services;
mod storage;
mod workloads;

use serde_json::Value;

use crate::area::{Area, area};
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::object::Fields as _;

/// Sets the defaults of a built-in kind.
pub fn apply(gvk: Gvk<'_>, object: &mut Value) {
    match area(gvk) {
        Area::Pods => pods::apply(gvk, object),
        Area::Workloads => workloads::apply(gvk, object),
        Area::Services => services::apply(gvk, object),
        Area::Other => apply_by_kind(gvk, object),
    }
}

fn apply_by_kind(gvk: Gvk<'_>, object: &mut Value) {
    match (gvk.group, gvk.kind) {
        ("", "Secret") => core::secret(object),
        ("", "Namespace") => core::namespace(object),
        ("", "LimitRange") => core::limit_range(object),
        ("", "ResourceQuota") => core::resource_quota(object),
        ("", "PersistentVolume") => storage::persistent_volume(object),
        ("", "PersistentVolumeClaim") => storage::claim(object),
        ("storage.k8s.io", "StorageClass") => storage::storage_class(object),
        ("storage.k8s.io", "CSIDriver") => storage::csi_driver(object),
        ("storage.k8s.io", "VolumeAttachment") => storage::attachment(object),
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => rbac::binding(object),
        ("scheduling.k8s.io", "PriorityClass") => {
            object.default_at("preemptionPolicy", "PreemptLowerPriority");
        }
        ("node.k8s.io", "RuntimeClass") => pods::resources::round_up(object, "overhead.podFixed"),
        ("admissionregistration.k8s.io", _) => admission::apply(gvk.kind, object),
        ("flowcontrol.apiserver.k8s.io", "FlowSchema") => flowcontrol::flow_schema(object),
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration") => flowcontrol::priority_level(object),
        ("apiregistration.k8s.io", "APIService") if object.has("spec.service") => {
            object.default_at("spec.service.port", 443);
        }
        ("resource.k8s.io", "ResourceClaim") => resource::device_claim(object, "spec.devices"),
        ("resource.k8s.io", "ResourceClaimTemplate") => resource::device_claim(object, "spec.spec.devices"),
        _ => {}
    }
}

/// Default for integers that are not pointers in Go, where zero means unset.
fn zero_to(object: &mut Value, path: &str, default: i64) {
    if object.int_at(path).unwrap_or_default() == 0 {
        object.set_at(path, default);
    }
}

#[cfg(test)]
mod tests;
