//! Warnings about PersistentVolumes, and about annotations that PersistentVolumeClaims have too.

use serde_json::Value;

use kubewright_apimachinery::object::Fields as _;

pub(crate) const STORAGE_CLASS: (&str, &str) = (
    "volume.beta.kubernetes.io/storage-class",
    "deprecated since v1.8; use \"storageClassName\" attribute instead",
);

const MOUNT_OPTIONS: (&str, &str) = (
    "volume.beta.kubernetes.io/mount-options",
    "deprecated since v1.31; use \"mountOptions\" attribute instead",
);

/// Removed volume plugins and their warnings.
const GONE: [(&str, &str); 6] = [
    ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("storageos", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

pub(super) fn persistent_volume(volume: &Value) -> Vec<String> {
    let mut warnings = annotations(volume, &[STORAGE_CLASS, MOUNT_OPTIONS]);
    if volume.str_at("spec.persistentVolumeReclaimPolicy") == "Recycle" {
        warnings.push(
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended \
             approach is to use dynamic provisioning."
                .to_owned(),
        );
    }
    if let Some((name, text)) = GONE.iter().find(|(name, _)| volume.has(&format!("spec.{name}"))) {
        let name = if *name == "storageos" { "storageOS" } else { name };
        warnings.push(format!("spec.{name}: {text}"));
    }
    warnings
}

pub(crate) fn annotations(object: &Value, deprecated: &[(&str, &str)]) -> Vec<String> {
    let present = object.map_at("metadata.annotations");
    let deprecated = deprecated.iter().filter(|(name, _)| present.contains_key(*name));
    deprecated.map(|(name, text)| format!("metadata.annotations[{name}]: {text}")).collect()
}
