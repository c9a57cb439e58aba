//! Validation of built-in kinds, with upstream's messages in upstream's order.
//!
//! Objects are already decoded and defaulted. Returns all errors, not only the first. On update, upstream often validates
//! an object twice, in the strategy and in the update validation. Errors then occur twice, as here.

mod admission;
mod apiservices;
mod certificates;
mod classes;
mod config;
mod events;
mod flowcontrol;
pub(crate) mod label_selector;
mod limits;
pub mod meta;
mod namespaces;
pub(crate) mod pods;
mod rbac;
mod resource;
mod reviews;
mod services;
mod storage;
mod volumes;
mod workloads;

use serde_json::Value;

use crate::area::{Area, area};
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::object::Fields as _;

/// Validates an object on creation.
pub fn create(gvk: Gvk<'_>, namespaced: bool, object: &Value) -> ErrorList {
    let mut errors = meta::create(gvk, namespaced, object);
    errors.extend(match area(gvk) {
        Area::Pods => pods::create(gvk, object),
        Area::Workloads => workloads::create(gvk, object),
        Area::Services => services::create(gvk, object),
        Area::Other => create_by_kind(gvk, object),
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
        Area::Other => update_by_kind(gvk, new, old),
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
        Area::Other => update_subresource_by_kind(gvk, subresource, new, old),
    });
    errors
}

/// Validates a review, which has a spec but no name.
pub fn review(gvk: Gvk<'_>, object: &Value) -> ErrorList {
    create_by_kind(gvk, object)
}

fn create_by_kind(gvk: Gvk<'_>, object: &Value) -> ErrorList {
    match (gvk.group, gvk.kind) {
        ("", "ConfigMap") => config::config_map(object),
        ("", "Secret") => config::secret(object),
        ("", "Namespace") => namespaces::namespace(object),
        ("", "LimitRange") => limits::limit_range(object),
        ("", "ResourceQuota") => limits::resource_quota(object),
        ("", "PersistentVolume") => volumes::persistent_volume(object),
        ("", "PersistentVolumeClaim") => volumes::claim(object),
        ("" | "events.k8s.io", "Event") => events::create(gvk, object),
        ("coordination.k8s.io", "Lease") => classes::lease(object),
        ("scheduling.k8s.io", "PriorityClass") => classes::priority_class(object),
        ("node.k8s.io", "RuntimeClass") => classes::runtime_class(object),
        ("rbac.authorization.k8s.io", kind) => rbac::create(kind, object),
        ("storage.k8s.io", kind) => storage::create(kind, object),
        ("certificates.k8s.io", "CertificateSigningRequest") => certificates::create(object),
        ("admissionregistration.k8s.io", kind) => admission::create(kind, object),
        ("flowcontrol.apiserver.k8s.io", kind) => flowcontrol::create(kind, object),
        ("apiregistration.k8s.io", "APIService") => apiservices::create(object),
        ("authentication.k8s.io" | "authorization.k8s.io", kind) => reviews::create(kind, object),
        ("resource.k8s.io", kind) => resource::create(kind, object),
        _ => ErrorList::new(),
    }
}

fn update_by_kind(gvk: Gvk<'_>, new: &Value, old: &Value) -> ErrorList {
    match (gvk.group, gvk.kind) {
        ("", "ConfigMap") => config::config_map_update(new, old),
        ("", "Secret") => config::secret_update(new, old),
        ("", "Namespace") => namespaces::namespace(new),
        ("", "LimitRange") => limits::limit_range(new),
        ("", "ResourceQuota") => limits::resource_quota_update(new, old),
        ("", "PersistentVolume") => volumes::persistent_volume_update(new, old),
        ("", "PersistentVolumeClaim") => volumes::claim_update(new, old),
        ("" | "events.k8s.io", "Event") => events::update(gvk, new, old),
        ("coordination.k8s.io", "Lease") => classes::lease(new),
        ("scheduling.k8s.io", "PriorityClass") => classes::priority_class_update(new, old),
        ("node.k8s.io", "RuntimeClass") => classes::runtime_class_update(new, old),
        ("rbac.authorization.k8s.io", kind) => rbac::update(kind, new, old),
        ("storage.k8s.io", kind) => storage::update(kind, new, old),
        ("certificates.k8s.io", "CertificateSigningRequest") => certificates::update("", new, old),
        ("admissionregistration.k8s.io", kind) => admission::update(kind, new, old),
        ("flowcontrol.apiserver.k8s.io", kind) => flowcontrol::create(kind, new),
        ("apiregistration.k8s.io", "APIService") => apiservices::create(new),
        ("resource.k8s.io", kind) => resource::update(kind, new, old),
        _ => ErrorList::new(),
    }
}

fn update_subresource_by_kind(gvk: Gvk<'_>, subresource: &str, new: &Value, old: &Value) -> ErrorList {
    match (gvk.group, gvk.kind, subresource) {
        ("", "Namespace", "finalize") => namespaces::finalize(new),
        ("", "Namespace", "status") => namespaces::status(new),
        ("", "ResourceQuota", "status") => limits::quota_status(new),
        ("", "PersistentVolumeClaim", "status") => volumes::claim_status(new),
        ("certificates.k8s.io", _, _) => certificates::update(subresource, new, old),
        ("storage.k8s.io", kind, "status") => storage::update(kind, new, old),
        ("flowcontrol.apiserver.k8s.io", _, "status") => flowcontrol::status(new),
        ("apiregistration.k8s.io", _, "status") => apiservices::status(new),
        _ => ErrorList::new(),
    }
}

/// Returns an error if a value is not one of the known ones. Upstream sorts most of these lists.
fn one_of(value: &str, known: &[&str], path: &Path) -> Option<FieldError> {
    (!known.contains(&value)).then(|| FieldError::not_supported(path, value, known))
}

/// Returns an error if a value is empty.
fn required(value: &str, path: &Path) -> Option<FieldError> {
    value.is_empty().then(|| FieldError::required(path, ""))
}

/// Returns an error if an integer is negative.
fn not_negative(object: &Value, name: &str, path: &Path) -> Option<FieldError> {
    let value = object.int_at(name).filter(|value| *value < 0)?;
    Some(FieldError::invalid(&path.child(name), value, "must be greater than or equal to 0"))
}

/// The strings of a list.
fn strings<'a>(object: &'a Value, path: &str) -> Vec<&'a str> {
    object.list_at(path).iter().map(|item| item.as_str().unwrap_or_default()).collect()
}

#[cfg(test)]
mod tests;
