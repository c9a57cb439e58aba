//! Defaults of volumes.

use serde_json::{Value, json};

use super::{containers, image, list, resources};
use kubewright_apimachinery::object::Fields as _;

/// File mode 0644.
const FILE_MODE: i32 = 420;

/// Constant defaults by volume source: source, field and value.
const PLAIN: [(&str, &str, &str); 9] = [
    ("rbd", "pool", "rbd"),
    ("rbd", "user", "admin"),
    ("rbd", "keyring", "/etc/ceph/keyring"),
    ("iscsi", "iscsiInterface", "default"),
    ("azureDisk", "cachingMode", "ReadWrite"),
    ("azureDisk", "fsType", "ext4"),
    ("azureDisk", "kind", "Shared"),
    ("scaleIO", "storageMode", "ThinProvisioned"),
    ("scaleIO", "fsType", "xfs"),
];

/// Sets the defaults of a volume. A volume without a source becomes an emptyDir.
pub(super) fn volume(volume: &mut Value) {
    let sourceless = volume
        .as_object()
        .is_none_or(|fields| fields.iter().all(|(name, value)| name == "name" || value.is_null()));
    if sourceless {
        volume.set_at("emptyDir", json!({}));
    }
    for name in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = volume.at_mut(name) {
            source.default_at("defaultMode", FILE_MODE);
        }
    }
    for (source, name, value) in PLAIN {
        if let Some(source) = volume.at_mut(source) {
            source.default_at(name, value);
        }
    }
    if let Some(disk) = volume.at_mut("azureDisk") {
        disk.default_at("readOnly", false);
    }
    if let Some(path) = volume.at_mut("hostPath") {
        path.default_at("type", "");
    }
    if let Some(source) = volume.at_mut("image")
        && !source.has("pullPolicy")
    {
        let policy = image::pull_policy(source.str_at("reference"));
        source.set_at("pullPolicy", policy);
    }
    if let Some(spec) = volume.at_mut("ephemeral.volumeClaimTemplate.spec") {
        spec.default_at("volumeMode", "Filesystem");
        resources::round_up(spec, "resources.limits");
        resources::round_up(spec, "resources.requests");
    }
    if let Some(source) = volume.at_mut("downwardAPI") {
        downward_api(source);
    }
    if let Some(source) = volume.at_mut("projected") {
        list(source, "sources").iter_mut().for_each(projection);
    }
}

fn projection(source: &mut Value) {
    if let Some(source) = source.at_mut("downwardAPI") {
        downward_api(source);
    }
    if let Some(token) = source.at_mut("serviceAccountToken") {
        token.default_at("expirationSeconds", 3600);
    }
}

fn downward_api(source: &mut Value) {
    for file in list(source, "items") {
        if let Some(selector) = file.at_mut("fieldRef") {
            containers::field_selector(selector);
        }
    }
}
