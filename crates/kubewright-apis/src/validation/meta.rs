//! Validation of `metadata` of built-in kinds: the name rule of each kind, and how often its strategy checks
//! it.
//!
//! The checks are those of [`kubewright_apimachinery::meta`]. Names of kinds that are not listed are DNS
//! subdomains.

use kubewright_apimachinery::field::ErrorList;
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::meta::{self, Check, NameRule, Rules};
use kubewright_apimachinery::object::Fields as _;
use serde_json::Value;

/// Validates metadata on creation, after the name has been generated.
pub fn create(gvk: Gvk<'_>, namespaced: bool, object: &Value) -> ErrorList {
    meta::create(&rules(gvk, object), namespaced, object)
}

/// Validates metadata of an object that replaces `old`.
pub fn update(gvk: Gvk<'_>, namespaced: bool, new: &Value, old: &Value) -> ErrorList {
    let rules = rules(gvk, new);
    meta::update(&rules, rules.update, namespaced, new, old)
}

/// Validates metadata on an update of a subresource.
pub fn update_subresource(
    gvk: Gvk<'_>,
    subresource: &str,
    namespaced: bool,
    new: &Value,
    old: &Value,
) -> ErrorList {
    meta::update(&rules(gvk, new), subresource_checks(gvk, subresource), namespaced, new, old)
}

/// The rules of a kind. `object` is only needed for kinds whose name depends on the spec.
fn rules(gvk: Gvk<'_>, object: &Value) -> Rules {
    Rules {
        name: name_rule(gvk, object),
        kube_finalizers: has_kube_finalizers(gvk),
        update: update_checks(gvk),
    }
}

fn name_rule(gvk: Gvk<'_>, object: &Value) -> NameRule {
    match (gvk.group, gvk.kind) {
        ("", "Namespace" | "Service") | ("apps", "StatefulSet") => NameRule::DnsLabel,
        ("", "Event") | ("policy" | "rbac.authorization.k8s.io", _) => NameRule::PathSegment,
        ("certificates.k8s.io", "CertificateSigningRequest") => NameRule::Any,
        ("networking.k8s.io", "IPAddress") => NameRule::IpAddress,
        ("apiregistration.k8s.io", "APIService") => NameRule::ApiService {
            required: format!("{}.{}", object.str_at("spec.version"), object.str_at("spec.group")),
        },
        ("apiextensions.k8s.io", "CustomResourceDefinition") => NameRule::Definition {
            required: format!("{}.{}", object.str_at("spec.names.plural"), object.str_at("spec.group")),
        },
        _ => NameRule::DnsSubdomain,
    }
}

/// Whether finalizers of a kind must be qualified or known. A few kinds use only the generic rules.
fn has_kube_finalizers(gvk: Gvk<'_>) -> bool {
    match gvk.group {
        // The legacy Event strategy does not validate metadata.
        "" => gvk.kind != "Event",
        "apps"
        | "autoscaling"
        | "batch"
        | "certificates.k8s.io"
        | "discovery.k8s.io"
        | "events.k8s.io"
        | "flowcontrol.apiserver.k8s.io"
        | "networking.k8s.io"
        | "rbac.authorization.k8s.io"
        | "resource.k8s.io"
        | "scheduling.k8s.io"
        | "storage.k8s.io" => true,
        _ => false,
    }
}

fn update_checks(gvk: Gvk<'_>) -> &'static [Check] {
    use Check::{New, Update};
    match (gvk.group, gvk.kind) {
        ("", "Event") | ("policy", _) => &[],
        ("", "LimitRange")
        | ("discovery.k8s.io" | "flowcontrol.apiserver.k8s.io" | "admissionregistration.k8s.io", _) => &[New],
        ("", "PersistentVolume") | ("storage.k8s.io", "VolumeAttachment" | "CSINode") => &[New, New],
        ("", "PersistentVolumeClaim") => &[New, Update, New],
        ("rbac.authorization.k8s.io", _) => &[New, New, Update],
        ("", "ConfigMap" | "Secret" | "ServiceAccount" | "Pod" | "Service" | "Endpoints")
        | ("apps", "ControllerRevision")
        | ("networking.k8s.io", "Ingress" | "IngressClass")
        | ("storage.k8s.io", "VolumeAttributesClass")
        | ("apiregistration.k8s.io", _) => &[Update, New],
        ("", "PodTemplate")
        | ("apps", "Deployment" | "StatefulSet")
        | ("batch", "CronJob")
        | ("autoscaling" | "coordination.k8s.io" | "events.k8s.io" | "scheduling.k8s.io", _)
        | ("resource.k8s.io", "ResourceSlice")
        | ("networking.k8s.io", "IPAddress" | "ServiceCIDR")
        | ("storage.k8s.io", "CSIDriver") => &[Update],
        (
            ""
            | "apps"
            | "batch"
            | "certificates.k8s.io"
            | "networking.k8s.io"
            | "node.k8s.io"
            | "resource.k8s.io"
            | "storage.k8s.io",
            _,
        ) => &[New, Update],
        // CustomResourceDefinitions and custom resources.
        _ => &[Update],
    }
}

/// The checks of a kind's strategy for a subresource.
fn subresource_checks(gvk: Gvk<'_>, subresource: &str) -> &'static [Check] {
    use Check::{New, Update};
    match (gvk.group, gvk.kind, subresource) {
        ("admissionregistration.k8s.io" | "flowcontrol.apiserver.k8s.io" | "policy", _, _)
        | ("batch", "CronJob", _) => &[],
        ("", "Pod", "resize") => &[New],
        ("", "Pod", "ephemeralcontainers") => &[Update, New],
        ("certificates.k8s.io", _, _) => &[New, Update],
        ("storage.k8s.io", "VolumeAttachment", _) => &[New, New],
        _ => &[Update],
    }
}

#[cfg(test)]
mod tests;
