//! Validation of `metadata` of built-in kinds: the rule of each kind's name, and how often its strategy checks it.
//!
//! The checks themselves are those of [`kubewright_apimachinery::meta`]. Kinds that are not listed have DNS subdomains
//! as names.

use kubewright_apimachinery::field::ErrorList;
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::meta::{self, Check, NameRule, Rules};
use kubewright_apimachinery::object::Fields as _;
use serde_json::Value;

/// Checks the metadata of an object that is about to be created. Its name has been generated.
pub fn create(gvk: Gvk<'_>, namespaced: bool, object: &Value) -> ErrorList {
    meta::create(&rules(gvk, object), namespaced, object)
}

/// Checks the metadata of an object that is about to replace `old`.
pub fn update(gvk: Gvk<'_>, namespaced: bool, new: &Value, old: &Value) -> ErrorList {
    let rules = rules(gvk, new);
    meta::update(&rules, rules.update, namespaced, new, old)
}

/// Checks the metadata of an object whose `subresource` is about to be replaced.
pub fn update_subresource(
    gvk: Gvk<'_>,
    subresource: &str,
    namespaced: bool,
    new: &Value,
    old: &Value,
) -> ErrorList {
    meta::update(&rules(gvk, new), subresource_checks(gvk, subresource), namespaced, new, old)
}

/// The rules of a kind. The object is asked only by kinds whose name follows from their spec.
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

/// The kinds of kube-apiserver proper, but for the few that only use the generic rules.
fn has_kube_finalizers(gvk: Gvk<'_>) -> bool {
    match gvk.group {
        // Its legacy path does not look at metadata.
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

/// What a kind's strategy for a subresource checks.
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
