//! Strategies of kinds without their own module: status reset and generation, with exceptions by kind.
//!
//! The server sets what depends on the clock or the request: missing times of conditions,
//! `status.lastPhaseTransitionTime` of a PersistentVolume, and the user of a CertificateSigningRequest.

use serde_json::{Value, json};

use super::{certificates, claims};
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::object::Fields as _;

pub(super) fn prepare_create(gvk: Gvk<'_>, object: &mut Value) {
    match (gvk.group, gvk.kind) {
        ("", "Namespace") => namespace(object),
        ("", "ServiceAccount") => service_account(object),
        ("", "PersistentVolume") => object.set_at("status", json!({"phase": "Pending"})),
        ("", "PersistentVolumeClaim") => {
            object.set_at("status", json!({"phase": "Pending"}));
            claims::prepare(object, None);
        }
        ("storage.k8s.io", "VolumeAttachment") => object.set_at("status", json!({"attached": false})),
        ("coordination.k8s.io", "Lease") => lease(object, None),
        ("certificates.k8s.io", "CertificateSigningRequest") => certificates::prepare_create(object),
        ("apiregistration.k8s.io", "APIService") => api_service(object),
        _ => {}
    }
    if resets_status(gvk) {
        object.set_at("status", json!({}));
    }
    if counts_generations(gvk) && gvk.kind != "CSIDriver" {
        object.set_at("metadata.generation", 1);
    }
}

pub(super) fn prepare_update(gvk: Gvk<'_>, new: &mut Value, old: &Value) {
    match (gvk.group, gvk.kind) {
        ("", "Namespace") => {
            keep(new, old, "spec.finalizers");
            keep(new, old, "status");
        }
        ("", "ServiceAccount") => service_account(new),
        ("", "PersistentVolumeClaim") => {
            keep(new, old, "status");
            claims::prepare(new, Some(old));
        }
        ("", "PersistentVolume")
        | ("storage.k8s.io", "VolumeAttachment")
        | ("apiregistration.k8s.io", "APIService") => keep(new, old, "status"),
        ("coordination.k8s.io", "Lease") => lease(new, Some(old)),
        ("certificates.k8s.io", "CertificateSigningRequest") => {
            keep(new, old, "spec");
            keep(new, old, "status");
        }
        _ => {}
    }
    if resets_status(gvk) {
        keep(new, old, "status");
    }
    if counts_generations(gvk) && counted_change(gvk, new, old) {
        new.set_at(
            "metadata.generation",
            old.int_at("metadata.generation").unwrap_or_default().saturating_add(1),
        );
    }
}

pub(super) fn prepare_subresource(gvk: Gvk<'_>, subresource: &str, new: &mut Value, old: &Value) {
    match (gvk.group, gvk.kind, subresource) {
        ("", "Namespace", "finalize") => keep(new, old, "status"),
        ("certificates.k8s.io", "CertificateSigningRequest", "approval") => {
            certificates::prepare_approval(new, old);
        }
        (_, _, "status") => {
            keep(new, old, "spec");
            match (gvk.group, gvk.kind) {
                ("certificates.k8s.io", "CertificateSigningRequest") => {
                    certificates::prepare_status(new, old);
                }
                ("flowcontrol.apiserver.k8s.io", _) => keep_metadata(new, old),
                ("storage.k8s.io", "VolumeAttachment")
                | ("resource.k8s.io" | "admissionregistration.k8s.io", _)
                | ("apiregistration.k8s.io", "APIService") => {
                    for name in
                        ["labels", "annotations", "finalizers", "ownerReferences", "deletionTimestamp"]
                    {
                        keep(new, old, &format!("metadata.{name}"));
                    }
                }
                _ => {}
            }
        }
        _ => {}
    }
}

/// Kinds with a generation. That of a CSIDriver is absent until the first change.
fn counts_generations(gvk: Gvk<'_>) -> bool {
    matches!(
        (gvk.group, gvk.kind),
        ("admissionregistration.k8s.io" | "flowcontrol.apiserver.k8s.io", _)
            | ("scheduling.k8s.io", "PriorityClass")
            | ("storage.k8s.io", "CSIDriver")
            | ("resource.k8s.io", "DeviceClass" | "ResourceSlice")
    )
}

/// Kinds whose status is cleared on creation and only changes through the subresource.
fn resets_status(gvk: Gvk<'_>) -> bool {
    matches!(
        (gvk.group, gvk.kind),
        ("", "ResourceQuota")
            | ("flowcontrol.apiserver.k8s.io", _)
            | ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy")
            | ("resource.k8s.io", "ResourceClaim")
    )
}

/// Whether a field changed that increments the generation.
fn counted_change(gvk: Gvk<'_>, new: &Value, old: &Value) -> bool {
    let compared: &[&str] = match (gvk.group, gvk.kind) {
        (_, "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration") => &["webhooks"],
        // All fields are immutable.
        ("scheduling.k8s.io", _) => &[],
        _ => &["spec"],
    };
    compared.iter().any(|path| !same(new.at(path), old.at(path)))
}

/// Whether two values are equal if an empty list equals an absent one.
fn same(new: &Value, old: &Value) -> bool {
    match (new, old) {
        (Value::Object(new), Value::Object(old)) => {
            let same_at = |name: &String| {
                same(new.get(name).unwrap_or(&Value::Null), old.get(name).unwrap_or(&Value::Null))
            };
            new.keys().all(same_at) && old.keys().all(same_at)
        }
        (Value::Array(new), Value::Array(old)) => {
            new.len() == old.len() && new.iter().zip(old).all(|(new, old)| same(new, old))
        }
        (Value::Array(items), Value::Null) | (Value::Null, Value::Array(items)) => items.is_empty(),
        _ => new == old,
    }
}

fn namespace(object: &mut Value) {
    object.set_at("status", json!({"phase": "Active"}));
    let mut finalizers = object.list_at("spec.finalizers").to_vec();
    if !finalizers.iter().any(|finalizer| finalizer == "kubernetes") {
        finalizers.push("kubernetes".into());
    }
    object.set_at("spec.finalizers", finalizers);
}

/// Drops all fields of secret references but the name.
fn service_account(object: &mut Value) {
    for secret in object.list_mut("secrets").into_iter().flatten() {
        *secret = match secret.str_at("name") {
            "" => json!({}),
            name => json!({"name": name}),
        };
    }
}

/// Drops the fields of coordinated leader election, whose feature gate is off.
fn lease(new: &mut Value, old: Option<&Value>) {
    for path in ["spec.strategy", "spec.preferredHolder"] {
        if !old.is_some_and(|old| old.has(path)) {
            new.remove_at(path);
        }
    }
}

fn api_service(object: &mut Value) {
    object.set_at("status", json!({}));
    if !object.has("spec.service") {
        let available = json!({
            "type": "Available", "status": "True", "reason": "Local",
            "message": "Local APIServices are always available", "lastTransitionTime": null
        });
        object.set_at("status.conditions", json!([available]));
    }
}

/// Restores a field from the old object.
pub(super) fn keep(new: &mut Value, old: &Value, path: &str) {
    match old.at(path) {
        Value::Null => {
            new.remove_at(path);
        }
        value => new.set_at(path, value.clone()),
    }
}

/// Restores the metadata of the old object, except managedFields.
fn keep_metadata(new: &mut Value, old: &Value) {
    let managed = new.remove_at("metadata.managedFields");
    keep(new, old, "metadata");
    match managed {
        Some(managed) => new.set_at("metadata.managedFields", managed),
        None => _ = new.remove_at("metadata.managedFields"),
    }
}

#[cfg(test)]
mod tests;
