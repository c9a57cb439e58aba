//! Defaults of PersistentVolumes, PersistentVolumeClaims and the kinds of storage.k8s.io.

use serde_json::{Value, json};

use crate::defaults::pods::resources::round_up;
use kubewright_apimachinery::object::Fields as _;

pub(super) fn persistent_volume(object: &mut Value) {
    object.default_at("spec.persistentVolumeReclaimPolicy", "Retain");
    object.default_at("spec.volumeMode", "Filesystem");
    object.default_at("status.phase", "Pending");
    round_up(object, "spec.capacity");
    source(object, "spec");
}

pub(super) fn claim(object: &mut Value) {
    object.default_at("spec.volumeMode", "Filesystem");
    round_up(object, "spec.resources.requests");
    round_up(object, "spec.resources.limits");
    object.default_at("status.phase", "Pending");
    round_up(object, "status.capacity");
    round_up(object, "status.allocatedResources");
}

pub(super) fn storage_class(object: &mut Value) {
    object.default_at("reclaimPolicy", "Delete");
    object.default_at("volumeBindingMode", "Immediate");
}

pub(super) fn csi_driver(object: &mut Value) {
    object.default_at("spec.attachRequired", true);
    for name in ["podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"] {
        object.default_at(&format!("spec.{name}"), false);
    }
    object.default_at("spec.fsGroupPolicy", "ReadWriteOnceWithFSType");
    if object.list_at("spec.volumeLifecycleModes").is_empty() {
        object.set_at("spec.volumeLifecycleModes", json!(["Persistent"]));
    }
}

pub(super) fn attachment(object: &mut Value) {
    if object.has("spec.source.inlineVolumeSpec") {
        round_up(object, "spec.source.inlineVolumeSpec.capacity");
        source(object, "spec.source.inlineVolumeSpec");
    }
}

fn source(object: &mut Value, path: &str) {
    let Some(spec) = object.at_mut(path) else { return };
    let defaults: &[(&str, &[(&str, &str)])] = &[
        ("hostPath", &[("type", "")]),
        ("iscsi", &[("iscsiInterface", "default")]),
        ("rbd", &[("pool", "rbd"), ("user", "admin"), ("keyring", "/etc/ceph/keyring")]),
        ("azureDisk", &[("cachingMode", "ReadWrite"), ("kind", "Shared"), ("fsType", "ext4")]),
        ("scaleIO", &[("storageMode", "ThinProvisioned"), ("fsType", "xfs")]),
    ];
    for (source, fields) in defaults {
        if !spec.has(source) {
            continue;
        }
        for (name, value) in *fields {
            spec.default_at(&format!("{source}.{name}"), *value);
        }
        if *source == "azureDisk" {
            spec.default_at("azureDisk.readOnly", false);
        }
    }
}
