//! Defaults of PersistentVolume, and of inline volumes of VolumeAttachment.

use serde_json::Value;

use crate::core::pod::defaults::resources::round_up;
use kubewright_apimachinery::object::Fields as _;

pub(super) fn persistent_volume(object: &mut Value) {
    object.default_at("spec.persistentVolumeReclaimPolicy", "Retain");
    object.default_at("spec.volumeMode", "Filesystem");
    object.default_at("status.phase", "Pending");
    round_up(object, "spec.capacity");
    source(object, "spec");
}

pub(crate) fn source(object: &mut Value, path: &str) {
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
