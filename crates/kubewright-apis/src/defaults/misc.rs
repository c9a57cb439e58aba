//! Defaults of all other kinds: configuration, namespaces, storage, RBAC, admission.

mod admission;
mod volumes;

use serde_json::{Value, json};

use super::pods::resources::round_up;
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::meta::bytes;
use kubewright_apimachinery::object::Fields as _;

const RBAC: &str = "rbac.authorization.k8s.io";

pub(super) fn apply(gvk: Gvk<'_>, object: &mut Value) {
    match (gvk.group, gvk.kind) {
        ("", "Secret") => secret(object),
        ("", "Namespace") => namespace(object),
        ("", "LimitRange") => object.list_mut("spec.limits").into_iter().flatten().for_each(limit),
        ("", "ResourceQuota") => {
            for path in ["spec.hard", "status.hard", "status.used"] {
                round_up(object, path);
            }
        }
        ("", "PersistentVolume") => volumes::persistent_volume(object),
        ("", "PersistentVolumeClaim") => volumes::claim(object),
        ("storage.k8s.io", "StorageClass") => {
            object.default_at("reclaimPolicy", "Delete");
            object.default_at("volumeBindingMode", "Immediate");
        }
        ("storage.k8s.io", "CSIDriver") => csi_driver(object),
        ("storage.k8s.io", "VolumeAttachment") => volumes::attachment(object),
        (RBAC, "RoleBinding" | "ClusterRoleBinding") => binding(object),
        ("scheduling.k8s.io", "PriorityClass") => {
            object.default_at("preemptionPolicy", "PreemptLowerPriority");
        }
        ("node.k8s.io", "RuntimeClass") => round_up(object, "overhead.podFixed"),
        ("admissionregistration.k8s.io", _) => admission::apply(gvk.kind, object),
        ("flowcontrol.apiserver.k8s.io", "FlowSchema") => zero_to(object, "spec.matchingPrecedence", 1000),
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration") => priority_level(object),
        ("apiregistration.k8s.io", "APIService") if object.has("spec.service") => {
            object.default_at("spec.service.port", 443);
        }
        ("resource.k8s.io", "ResourceClaim") => device_claim(object, "spec.devices"),
        ("resource.k8s.io", "ResourceClaimTemplate") => device_claim(object, "spec.spec.devices"),
        _ => {}
    }
}

/// Merges the write-only `stringData` into `data`. It takes precedence.
fn secret(object: &mut Value) {
    object.default_at("type", "Opaque");
    let Some(Value::Object(texts)) = object.remove_at("stringData") else { return };
    for (key, text) in texts {
        let encoded = bytes::encode(text.as_str().unwrap_or_default().as_bytes());
        object.object_mut("data").insert(key, encoded.into());
    }
}

fn namespace(object: &mut Value) {
    let name = object.str_at("metadata.name").to_owned();
    // With generateName the label is added after the name is generated.
    if !name.is_empty() {
        object.object_mut("metadata.labels").insert("kubernetes.io/metadata.name".to_owned(), name.into());
    }
    object.default_at("status.phase", "Active");
}

/// One limit of a LimitRange. For containers, missing values are derived from the given ones.
fn limit(item: &mut Value) {
    for name in ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"] {
        round_up(item, name);
    }
    if item.str_at("type") != "Container" {
        return;
    }
    for (from, to) in [("max", "default"), ("default", "defaultRequest"), ("min", "defaultRequest")] {
        for (name, quantity) in item.map_at(from).clone() {
            item.object_mut(to).entry(name).or_insert(quantity);
        }
    }
}

fn csi_driver(object: &mut Value) {
    object.default_at("spec.attachRequired", true);
    for name in ["podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"] {
        object.default_at(&format!("spec.{name}"), false);
    }
    object.default_at("spec.fsGroupPolicy", "ReadWriteOnceWithFSType");
    if object.list_at("spec.volumeLifecycleModes").is_empty() {
        object.set_at("spec.volumeLifecycleModes", json!(["Persistent"]));
    }
}

fn binding(object: &mut Value) {
    if object.str_at("roleRef.apiGroup").is_empty() {
        object.set_at("roleRef.apiGroup", RBAC);
    }
    for subject in object.list_mut("subjects").into_iter().flatten() {
        let of_rbac = matches!(subject.str_at("kind"), "User" | "Group");
        if of_rbac && subject.str_at("apiGroup").is_empty() {
            subject.set_at("apiGroup", RBAC);
        }
    }
}

fn priority_level(object: &mut Value) {
    if object.has("spec.limited") {
        object.default_at("spec.limited.nominalConcurrencyShares", 30);
        object.default_at("spec.limited.lendablePercent", 0);
        if object.has("spec.limited.limitResponse.queuing") {
            zero_to(object, "spec.limited.limitResponse.queuing.handSize", 8);
            zero_to(object, "spec.limited.limitResponse.queuing.queues", 64);
            zero_to(object, "spec.limited.limitResponse.queuing.queueLengthLimit", 50);
        }
    }
    if object.has("spec.exempt") {
        object.default_at("spec.exempt.nominalConcurrencyShares", 0);
        object.default_at("spec.exempt.lendablePercent", 0);
    }
}

/// Device requests in a ResourceClaim or its template.
fn device_claim(object: &mut Value, path: &str) {
    for request in object.list_mut(&format!("{path}.requests")).into_iter().flatten() {
        if let Some(exactly) = request.at_mut("exactly") {
            device_request(exactly);
        }
        request.list_mut("firstAvailable").into_iter().flatten().for_each(device_request);
    }
}

fn device_request(request: &mut Value) {
    if request.str_at("allocationMode").is_empty() {
        request.set_at("allocationMode", "ExactCount");
    }
    if request.str_at("allocationMode") == "ExactCount" {
        zero_to(request, "count", 1);
    }
    for toleration in request.list_mut("tolerations").into_iter().flatten() {
        if toleration.str_at("operator").is_empty() {
            toleration.set_at("operator", "Equal");
        }
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
