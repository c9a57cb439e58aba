//! Validation of volume mounts and volume devices.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::checks;
use super::volumes::Volumes;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::object::Fields as _;

/// Validates `volumeMounts` and `volumeDevices` of a container.
pub(super) fn mounts(container: &Value, volumes: &Volumes<'_>, path: &Path, errors: &mut ErrorList) {
    let mounted = paths(container, "volumeMounts", "mountPath");
    let devices = paths(container, "volumeDevices", "devicePath");
    volume_mounts(container, volumes, &devices, path, errors);
    volume_devices(container, volumes, &mounted, path, errors);
}

/// Paths by volume name.
fn paths<'a>(container: &'a Value, list: &str, name: &str) -> HashMap<&'a str, &'a str> {
    container.list_at(list).iter().map(|item| (item.str_at("name"), item.str_at(name))).collect()
}

fn volume_mounts(
    container: &Value,
    volumes: &Volumes<'_>,
    devices: &HashMap<&str, &str>,
    path: &Path,
    errors: &mut ErrorList,
) {
    let mut seen = HashSet::new();
    // Some errors omit the index of the mount.
    let list_path = path.child("volumeMounts");
    for (mount, path) in checks::items(container, "volumeMounts", path) {
        let (name, target) = (mount.str_at("name"), mount.str_at("mountPath"));
        checks::required(mount, "name", &path, errors);
        if !volumes.contains_key(name) {
            errors.push(FieldError::not_found(&path.child("name"), name));
        }
        checks::required(mount, "mountPath", &path, errors);
        if !seen.insert(target) {
            errors.push(FieldError::invalid(&path.child("mountPath"), target, "must be unique"));
        }
        if devices.contains_key(name) {
            let detail = "must not already exist in volumeDevices";
            errors.push(FieldError::invalid(&path.child("name"), name, detail));
        }
        if devices.values().any(|device| *device == target) {
            let detail = "must not already exist as a path in volumeDevices";
            errors.push(FieldError::invalid(&path.child("mountPath"), target, detail));
        }
        sub_paths(mount, &path, &list_path, errors);
        propagation(mount, container, &list_path.child("mountPropagation"), errors);
        recursive_read_only(mount, &list_path.child("recursiveReadOnly"), errors);
    }
}

fn sub_paths(mount: &Value, path: &Path, list_path: &Path, errors: &mut ErrorList) {
    let (fixed, expression) = (mount.str_at("subPath"), mount.str_at("subPathExpr"));
    if !fixed.is_empty() {
        checks::local_path(fixed, &list_path.child("subPath"), errors);
    }
    if !expression.is_empty() {
        if !fixed.is_empty() {
            let detail = "subPathExpr and subPath are mutually exclusive";
            errors.push(FieldError::invalid(&path.child("subPathExpr"), expression, detail));
        }
        checks::local_path(expression, &list_path.child("subPathExpr"), errors);
    }
}

fn propagation(mount: &Value, container: &Value, path: &Path, errors: &mut ErrorList) {
    let supported = ["Bidirectional", "HostToContainer", "None"];
    let Some(value) = mount.at("mountPropagation").as_str() else { return };
    if !supported.contains(&value) {
        errors.push(FieldError::not_supported(path, value, &supported));
    }
    if value == "Bidirectional" && !container.bool_at("securityContext.privileged") {
        let detail = "Bidirectional mount propagation is available only to privileged containers";
        errors.push(FieldError::forbidden(path, detail));
    }
}

fn recursive_read_only(mount: &Value, path: &Path, errors: &mut ErrorList) {
    match mount.at("recursiveReadOnly").as_str() {
        None | Some("Disabled") => {}
        Some("Enabled" | "IfPossible") => {
            if !mount.bool_at("readOnly") {
                errors.push(FieldError::forbidden(path, "may only be specified when readOnly is true"));
            }
            if mount.has("mountPropagation") && mount.str_at("mountPropagation") != "None" {
                let detail = "may only be specified when mountPropagation is None or not specified";
                errors.push(FieldError::forbidden(path, detail));
            }
        }
        Some(other) => {
            errors.push(FieldError::not_supported(path, other, &["Disabled", "Enabled", "IfPossible"]));
        }
    }
}

fn volume_devices(
    container: &Value,
    volumes: &Volumes<'_>,
    mounted: &HashMap<&str, &str>,
    path: &Path,
    errors: &mut ErrorList,
) {
    let mut names = HashSet::new();
    let mut targets = HashSet::new();
    for (device, path) in checks::items(container, "volumeDevices", path) {
        let (name, target) = (device.str_at("name"), device.str_at("devicePath"));
        let (name_path, target_path) = (path.child("name"), path.child("devicePath"));
        checks::required(device, "name", &path, errors);
        if names.contains(name) {
            errors.push(FieldError::invalid(&name_path, name, "must be unique"));
        }
        match volumes.get(name) {
            Some(volume) if !volume.has("persistentVolumeClaim") && !volume.has("ephemeral") => {
                let detail =
                    "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
                errors.push(FieldError::invalid(&name_path, name, detail));
            }
            Some(_) => {}
            None => errors.push(FieldError::not_found(&name_path, name)),
        }
        checks::required(device, "devicePath", &path, errors);
        if targets.contains(target) {
            errors.push(FieldError::invalid(&target_path, target, "must be unique"));
        }
        if target.split('/').any(|part| part == "..") {
            errors.push(FieldError::invalid(&target_path, target, "can not contain backsteps ('..')"));
        } else {
            targets.insert(target);
        }
        if mounted.contains_key(name) {
            errors.push(FieldError::invalid(&name_path, name, "must not already exist in volumeMounts"));
        }
        if mounted.values().any(|mount| *mount == target) {
            let detail = "must not already exist as a path in volumeMounts";
            errors.push(FieldError::invalid(&target_path, target, detail));
        }
        if !name.is_empty() {
            names.insert(name);
        }
    }
}
