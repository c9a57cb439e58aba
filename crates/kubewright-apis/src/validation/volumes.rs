//! Validation of PersistentVolumes and PersistentVolumeClaims.

pub(super) mod sources;

use std::cmp::Ordering;

use serde_json::{Value, json};

use super::{one_of, strings};
use crate::validation::label_selector;
use crate::validation::pods::internal;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::meta;
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::quantity::Quantity;

const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const VOLUME_MODES: [&str; 2] = ["Block", "Filesystem"];
const RESIZE_STATUSES: [&str; 5] = [
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
];
const STORAGE_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

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
pub(super) fn inline_volume(spec: &Value, path: &Path) -> ErrorList {
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

pub(super) fn claim(object: &Value) -> ErrorList {
    let spec = object.at("spec");
    let path = Path::new("spec");
    let mut errors = ErrorList::new();
    let modes = access_modes(spec, "at least 1 access mode is required", &path.child("accessModes"));
    // The selector error comes between a missing and an invalid access mode.
    let (missing, wrong): (ErrorList, ErrorList) =
        modes.into_iter().partition(|_| strings(spec, "accessModes").is_empty());
    errors.extend(missing);
    errors.extend(label_selector::validate(spec.at("selector"), &path.child("selector")));
    errors.extend(wrong);
    let storage = path.child("resources").key("storage");
    match Quantity::from_json(spec.at("resources.requests.storage")) {
        Ok(amount) if spec.has("resources.requests.storage") => errors.extend(positive(&amount, &storage)),
        _ => errors.push(FieldError::required(&storage, "")),
    }
    errors.extend(class_name(spec, "storageClassName", &path));
    errors.extend(volume_mode(spec, &path));
    errors.extend(data_sources(spec, &path));
    errors.extend(class_name(spec, "volumeAttributesClassName", &path));
    errors
}

pub(super) fn claim_update(new: &Value, old: &Value) -> ErrorList {
    let mut errors = claim(new);
    errors.extend(claim(new));
    let (mut new_spec, mut old_spec) = (new.at("spec").clone(), old.at("spec").clone());
    if old_spec.str_at("volumeName").is_empty() {
        old_spec["volumeName"] = new_spec.at("volumeName").clone();
    }
    errors.extend(settle_class(&mut new_spec, &old_spec, new, old));
    if new.str_at("status.phase") == "Bound" {
        if new_spec.has("resources.requests") {
            new_spec.set_at("resources.requests.storage", old_spec.at("resources.requests.storage").clone());
        }
        new_spec["volumeAttributesClassName"] = old_spec.at("volumeAttributesClassName").clone();
    }
    let drop_nulls = |spec: &mut Value| {
        if let Some(spec) = spec.as_object_mut() {
            spec.retain(|_, value| !value.is_null());
        }
    };
    drop_nulls(&mut new_spec);
    drop_nulls(&mut old_spec);
    if new_spec != old_spec {
        let difference = internal::difference("PersistentVolumeClaimSpec", &old_spec, &new_spec);
        errors.push(FieldError::forbidden(
            &Path::new("spec"),
            format!(
                "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound \
                 claims\n{difference}"
            ),
        ));
    }
    errors.extend(shrinking(new, old));
    errors.extend(meta::immutable(
        new.at("spec.volumeMode"),
        old.at("spec.volumeMode"),
        &Path::new("volumeMode"),
    ));
    errors.extend(attributes_class_removed(new, old));
    errors
}

pub(super) fn claim_status(object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    if object.list_at("spec.accessModes").is_empty() {
        errors.push(FieldError::required(&Path::new("Spec").child("accessModes"), ""));
    }
    let path = Path::new("status");
    errors.extend(amounts(object.at("status.capacity"), &path.child("capacity")));
    let statuses = path.child("allocatedResourceStatuses");
    for (name, status) in object.map_at("status.allocatedResourceStatuses") {
        errors.extend(resource_key(name, &statuses));
        if !RESIZE_STATUSES.contains(&status.as_str().unwrap_or_default()) {
            errors.push(FieldError::not_supported(&statuses, name.as_str(), &RESIZE_STATUSES));
        }
    }
    let allocated = path.child("allocatedResources");
    for (name, amount) in object.map_at("status.allocatedResources") {
        let problems = resource_key(name, &allocated);
        if problems.is_empty() {
            errors.extend(amounts(&json!({name.as_str(): amount}), &allocated));
        }
        errors.extend(problems);
    }
    errors
}

fn access_modes(spec: &Value, missing: &str, path: &Path) -> ErrorList {
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

fn positive(amount: &Quantity, path: &Path) -> Option<FieldError> {
    (amount.sign() <= 0).then(|| FieldError::invalid(path, amount.to_string(), "must be greater than zero"))
}

fn amounts(amounts: &Value, path: &Path) -> ErrorList {
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

fn class_name(spec: &Value, name: &str, path: &Path) -> ErrorList {
    match spec.str_at(name) {
        "" => ErrorList::new(),
        class => meta::invalid(&path.child(name), class, names::dns1123_subdomain(class)).collect(),
    }
}

fn volume_mode(spec: &Value, path: &Path) -> Option<FieldError> {
    let mode = spec.at("volumeMode").as_str()?;
    one_of(mode, &VOLUME_MODES, &path.child("volumeMode"))
}

fn data_sources(spec: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for name in ["dataSource", "dataSourceRef"] {
        if spec.has(name) {
            errors.extend(data_source(spec.at(name), &path.child(name)));
        }
    }
    if spec.has("dataSource") && spec.has("dataSourceRef") {
        let same = ["apiGroup", "kind", "name"]
            .iter()
            .all(|name| spec.at("dataSource").at(name) == spec.at("dataSourceRef").at(name));
        let detail = if !spec.str_at("dataSourceRef.namespace").is_empty() {
            "may not be specified when dataSourceRef.namespace is specified"
        } else if !same {
            "must match dataSourceRef"
        } else {
            return errors;
        };
        // Upstream prints the path itself, which marshals to `{}`.
        errors.push(FieldError::invalid_printed(path, "{}", detail));
    }
    errors
}

fn data_source(source: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    errors.extend(super::required(source.str_at("name"), &path.child("name")));
    let kind = source.str_at("kind");
    errors.extend(super::required(kind, &path.child("kind")));
    let group = source.str_at("apiGroup");
    if group.is_empty() {
        if kind != "PersistentVolumeClaim" {
            let detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
            errors.push(FieldError::invalid(path, kind, detail));
        }
    } else {
        errors.extend(meta::invalid(&path.child("apiGroup"), group, names::dns1123_subdomain(group)));
    }
    let namespace = source.str_at("namespace");
    if !namespace.is_empty() {
        errors.extend(meta::invalid(&path.child("namespace"), namespace, names::dns1123_label(namespace)));
    }
    errors
}

/// Allows to set an unset storage class, also to the value of the old annotation.
fn settle_class(new_spec: &mut Value, old_spec: &Value, new: &Value, old: &Value) -> Option<FieldError> {
    let annotation = |object: &Value| {
        object.map_at("metadata.annotations").get(STORAGE_CLASS).and_then(Value::as_str).map(str::to_owned)
    };
    let (new_note, old_note) = (annotation(new), annotation(old));
    let (new_class, old_class) =
        (new_spec.at("storageClassName").as_str(), old_spec.at("storageClassName").as_str());
    let from_nothing = old_class.is_none() && new_class.is_some();
    let same_as_note = new_class == old_note.as_deref();
    if old_note.is_some() && from_nothing && same_as_note && (new_note.is_none() || new_note == old_note) {
        new_spec["storageClassName"] = Value::Null;
        return None;
    }
    if from_nothing && (old_note.is_none() || same_as_note) {
        new_spec["storageClassName"] = old_spec.at("storageClassName").clone();
    }
    (new_note != old_note).then(|| {
        let path = Path::new("metadata").child("annotations").child(STORAGE_CLASS);
        FieldError::invalid(&path, new_note.unwrap_or_default(), meta::IMMUTABLE)
    })
}

fn shrinking(new: &Value, old: &Value) -> Option<FieldError> {
    let amount = |object: &Value, path: &str| Quantity::from_json(object.at(path)).ok();
    let new_size = amount(new, "spec.resources.requests.storage")?;
    let smaller = new_size.cmp(&amount(old, "spec.resources.requests.storage")?) == Ordering::Less;
    let below_capacity = new_size <= amount(old, "status.capacity.storage")?;
    (smaller && below_capacity).then(|| {
        let path = Path::new("spec").child("resources").child("requests").child("storage");
        FieldError::forbidden(&path, "field can not be less than status.capacity")
    })
}

fn attributes_class_removed(new: &Value, old: &Value) -> Option<FieldError> {
    let class = new.at("spec.volumeAttributesClassName");
    if class == old.at("spec.volumeAttributesClassName")
        || !old.has("status.currentVolumeAttributesClassName")
    {
        return None;
    }
    let detail = match class.as_str() {
        None => "update to nil is forbidden when status.currentVolumeAttributesClassName is not nil",
        Some("") => {
            "update to empty string is forbidden when status.currentVolumeAttributesClassName is not nil"
        }
        Some(_) => return None,
    };
    Some(FieldError::forbidden(&Path::new("spec").child("volumeAttributesClassName"), detail))
}

/// Validates a resource name. `storage` is the only standard resource of claims.
fn resource_key(name: &str, path: &Path) -> ErrorList {
    let errors: ErrorList = meta::invalid(path, name, names::label_key(name)).collect();
    let native = !name.contains('/') || name.contains("kubernetes.io/");
    if errors.is_empty() && native && name != "storage" {
        return vec![FieldError::not_supported(path, name, &["storage"])];
    }
    errors
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
