//! Validation of PersistentVolume, and checks that it shares with PersistentVolumeClaim.

use serde_json::{Value, json};

use super::sources;
use crate::core::pod::validation::internal;
use crate::validation::{one_of, strings};
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::meta;
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::quantity::Quantity;

const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

const VOLUME_MODES: [&str; 2] = ["Block", "Filesystem"];

pub(super) fn persistent_volume(object: &Value) -> ErrorList {
    let spec = object.at("spec");
    let path = Path::new("spec");
    let mut errors = access_modes(spec, "", &path.child("accessModes"));
    errors.extend(capacity(spec, &path.child("capacity")));
    let policy = spec.str_at("persistentVolumeReclaimPolicy");
    if !policy.is_empty() {
        errors.extend(one_of(
            policy,
            &["Delete", "Recycle", "Retain"],
            &path.child("persistentVolumeReclaimPolicy"),
        ));
    }
    errors.extend(node_affinity(spec, &path.child("nodeAffinity")));
    errors.extend(sources::validate(spec, object.str_at("metadata.name"), &path));
    if sources::clean(spec.str_at("hostPath.path")) == "/" && policy == "Recycle" {
        let detail = "may not be 'recycle' for a hostPath mount of '/'";
        errors.push(FieldError::forbidden(&path.child("persistentVolumeReclaimPolicy"), detail));
    }
    errors.extend(class_name(spec, "storageClassName", &path));
    errors.extend(volume_mode(spec, &path));
    if let Some(class) = spec.at("volumeAttributesClassName").as_str() {
        if class.is_empty() {
            let detail = "an empty string is disallowed";
            errors.push(FieldError::required(&path.child("volumeAttributesClassName"), detail));
        }
        errors.extend(class_name(spec, "volumeAttributesClassName", &path));
        if !spec.has("csi") {
            let detail = "has to be specified when using volumeAttributesClassName";
            errors.push(FieldError::required(&path.child("csi"), detail));
        }
    }
    errors
}

/// Validates an inline PersistentVolume spec of a VolumeAttachment.
pub(crate) fn inline_volume(spec: &Value, path: &Path) -> ErrorList {
    const INLINE: &str = "may not be specified in the context of inline volumes";
    let mut errors = ErrorList::new();
    let forbidden = |name: &str| spec.has(name).then(|| FieldError::forbidden(&path.child(name), INLINE));
    errors.extend(forbidden("claimRef"));
    errors.extend(forbidden("capacity"));
    if !spec.has("csi") {
        let detail = "has to be specified in the context of inline volumes";
        errors.push(FieldError::required(&path.child("csi"), detail));
    }
    errors.extend(access_modes(spec, "", &path.child("accessModes")));
    if !matches!(spec.str_at("persistentVolumeReclaimPolicy"), "" | "Retain") {
        let detail = "may only be Retain in the context of inline volumes";
        errors.push(FieldError::forbidden(&path.child("persistentVolumeReclaimPolicy"), detail));
    }
    errors.extend(forbidden("nodeAffinity"));
    errors.extend(sources::validate(spec, "", path));
    errors.extend(forbidden("storageClassName"));
    if !matches!(spec.str_at("volumeMode"), "" | "Filesystem") {
        let detail = "may not specify volumeMode other than Filesystem in the context of inline volumes";
        errors.push(FieldError::forbidden(&path.child("volumeMode"), detail));
    }
    errors
}

pub(super) fn persistent_volume_update(new: &Value, old: &Value) -> ErrorList {
    let mut errors = persistent_volume(new);
    errors.extend(persistent_volume(new));
    let (mut new_source, old_source) = (sources::only(new.at("spec")), sources::only(old.at("spec")));
    // The secret for expansion may be added later.
    if old_source.has("csi") && !old_source.has("csi.controllerExpandSecretRef") {
        new_source.remove_at("csi.controllerExpandSecretRef");
    }
    if new_source != old_source {
        let difference = internal::difference("PersistentVolumeSource", &old_source, &new_source);
        errors.push(FieldError::forbidden(
            &Path::new("spec").child("persistentvolumesource"),
            format!("spec.persistentvolumesource is immutable after creation\n{difference}"),
        ));
    }
    errors.extend(meta::immutable(
        new.at("spec.volumeMode"),
        old.at("spec.volumeMode"),
        &Path::new("volumeMode"),
    ));
    if old.has("spec.nodeAffinity") && new.at("spec.nodeAffinity") != old.at("spec.nodeAffinity") {
        let detail = meta::IMMUTABLE;
        let printed = printed_affinity(new.at("spec.nodeAffinity"));
        errors.push(FieldError::invalid_printed(&Path::new("nodeAffinity"), printed, detail));
    }
    if old.has("spec.volumeAttributesClassName") && !new.has("spec.volumeAttributesClassName") {
        let path = Path::new("spec").child("volumeAttributesClassName");
        errors.push(FieldError::forbidden(&path, "update from non-nil value to nil is forbidden"));
    }
    errors
}

pub(crate) fn access_modes(spec: &Value, missing: &str, path: &Path) -> ErrorList {
    let modes = strings(spec, "accessModes");
    if modes.is_empty() {
        return vec![FieldError::required(path, missing)];
    }
    let mut errors: ErrorList = modes.iter().filter_map(|mode| one_of(mode, &ACCESS_MODES, path)).collect();
    let other = |mode: &&str| *mode != "ReadWriteOncePod" && ACCESS_MODES.contains(mode);
    if modes.contains(&"ReadWriteOncePod") && modes.iter().any(other) {
        errors.push(FieldError::forbidden(path, "may not use ReadWriteOncePod with other access modes"));
    }
    errors
}

fn capacity(spec: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let capacity = spec.map_at("capacity");
    if capacity.is_empty() {
        errors.push(FieldError::required(path, ""));
    }
    if !capacity.contains_key("storage") || capacity.len() > 1 {
        errors.push(FieldError::not_supported(path, spec.at("capacity").clone(), &["storage"]));
    }
    for (name, amount) in capacity {
        errors.extend(amounts(&json!({name.as_str(): amount}), path));
        if let Ok(amount) = Quantity::from_json(amount) {
            errors.extend(positive(&amount, &path.key(name)));
        }
    }
    errors
}

pub(crate) fn positive(amount: &Quantity, path: &Path) -> Option<FieldError> {
    (amount.sign() <= 0).then(|| FieldError::invalid(path, amount.to_string(), "must be greater than zero"))
}

pub(crate) fn amounts(amounts: &Value, path: &Path) -> ErrorList {
    let amounts = amounts.as_object().into_iter().flatten();
    amounts
        .filter_map(|(name, amount)| {
            let value = Quantity::from_json(amount).ok()?.value();
            (value < 0)
                .then(|| FieldError::invalid(&path.key(name), value, "must be a valid resource quantity"))
        })
        .collect()
}

fn node_affinity(spec: &Value, path: &Path) -> Option<FieldError> {
    let affinity = spec.at("nodeAffinity");
    if affinity.is_null() {
        return None;
    }
    let path = path.child("required");
    if !affinity.has("required") {
        return Some(FieldError::required(&path, "must specify required node constraints"));
    }
    let missing = affinity.list_at("required.nodeSelectorTerms").is_empty();
    missing.then(|| {
        FieldError::required(&path.child("nodeSelectorTerms"), "must have at least one node selector term")
    })
}

pub(crate) fn class_name(spec: &Value, name: &str, path: &Path) -> ErrorList {
    match spec.str_at(name) {
        "" => ErrorList::new(),
        class => meta::invalid(&path.child(name), class, names::dns1123_subdomain(class)).collect(),
    }
}

pub(crate) fn volume_mode(spec: &Value, path: &Path) -> Option<FieldError> {
    let mode = spec.at("volumeMode").as_str()?;
    one_of(mode, &VOLUME_MODES, &path.child("volumeMode"))
}

fn printed_affinity(affinity: &Value) -> String {
    if affinity.is_null() {
        return "null".to_owned();
    }
    let required = match affinity.at("required") {
        Value::Null => "null".to_owned(),
        required => internal::compact("NodeSelector", required),
    };
    format!("{{\"Required\":{required}}}")
}
