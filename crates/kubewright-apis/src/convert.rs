//! One object in several API versions: what upstream's conversions do for the kinds that need more than a new
//! `apiVersion`.
//!
//! Nothing is lost on the way: what a version has no field for stands in annotations. The result is written as
//! decoding would leave it, with its always-present fields.

pub(crate) mod autoscaling;
mod events;
mod ordered;

use serde_json::Value;

pub(crate) use ordered::Ordered;

use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::object::Fields as _;

/// Where a DaemonSet counts its templates, since apps/v1 has no field for it any more.
pub(crate) const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// The object as kind `to`. Only versions and views of the same kind can be asked for; an object that is of
/// that version already comes back as it is.
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
