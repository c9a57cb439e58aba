//! Conversion between API versions of built-in kinds that differ in more than `apiVersion`.
//!
//! Conversion is lossless: fields that a version lacks are stored in annotations. The result has the same
//! always-present fields as a decoded object.

pub(crate) mod autoscaling;
mod events;
mod ordered;

use serde_json::Value;

pub(crate) use ordered::Ordered;

use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::object::Fields as _;

/// Annotation with the template generation of a DaemonSet. apps/v1 has no field for it.
pub(crate) const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// Converts an object to kind `to`, which must be another version or view of the same kind. An object of that
/// version is returned unchanged.
pub fn convert(object: Value, to: Gvk<'_>) -> Value {
    let from = object.str_at("apiVersion");
    let api_version = to.api_version();
    if from == api_version {
        return object;
    }
    let mut object = match (to.group, to.version, to.kind) {
        ("autoscaling", "v1", "HorizontalPodAutoscaler") => autoscaling::to_v1(object),
        ("autoscaling", "v2", "HorizontalPodAutoscaler") => autoscaling::to_v2(object),
        ("", "v1", "Event") => events::to_core(object),
        ("events.k8s.io", "v1", "Event") => events::to_events(object),
        _ => object,
    };
    object.set_at("apiVersion", api_version);
    object
}
