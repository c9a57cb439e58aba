//! Validation of PersistentVolumeClaim.

use std::cmp::Ordering;

use serde_json::{Value, json};

use crate::core::persistent_volume::validation::{access_modes, amounts, class_name, positive, volume_mode};
use crate::core::pod::validation::internal;
use crate::validation::{label_selector, required, strings};
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::meta;
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::quantity::Quantity;

const RESIZE_STATUSES: [&str; 5] = [
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
];

const STORAGE_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

pub(crate) fn claim(object: &Value) -> ErrorList {
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
    errors.extend(required(source.str_at("name"), &path.child("name")));
    let kind = source.str_at("kind");
    errors.extend(required(kind, &path.child("kind")));
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
