//! Warnings about Secrets, ServiceAccounts, PersistentVolumes and PersistentVolumeClaims. A warning never rejects a write.

use serde_json::Value;

use kubewright_apimachinery::field::quote;
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::meta::bytes;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::quantity::Quantity;

/// Warnings for an object that is created or updated.
pub(super) fn warnings(gvk: Gvk<'_>, new: &Value, old: Option<&Value>) -> Vec<String> {
    match (gvk.group, gvk.kind) {
        ("", "Secret") if new.str_at("type") == "kubernetes.io/tls" => key_pair(new).into_iter().collect(),
        ("", "ServiceAccount") => enforced_secrets(new, old).into_iter().collect(),
        ("", "PersistentVolume") => persistent_volume(new),
        ("", "PersistentVolumeClaim") => claim(new),
        _ => Vec::new(),
    }
}

/// Warns about a newly set deprecated annotation.
fn enforced_secrets(new: &Value, old: Option<&Value>) -> Option<String> {
    const ANNOTATION: &str = "kubernetes.io/enforce-mountable-secrets";
    let has = |account: &Value| account.map_at("metadata.annotations").contains_key(ANNOTATION);
    (has(new) && !old.is_some_and(has)).then(|| {
        format!(
            "metadata.annotations[{ANNOTATION}]: deprecated in v1.32+; prefer separate namespaces to isolate access to \
             mounted secrets"
        )
    })
}

/// Go's error for a pair of certificate and key. Checks only the PEM blocks, not their content.
fn key_pair(secret: &Value) -> Option<String> {
    let data = secret.map_at("data");
    let field = |key: &str| bytes::decode(data.get(key).and_then(Value::as_str).unwrap_or_default());
    let certificates = bytes::pem_labels(&field("tls.crt"));
    if !certificates.iter().any(|label| label == "CERTIFICATE") {
        return Some(match certificates.as_slice() {
            [] => "tls: failed to find any PEM data in certificate input".to_owned(),
            [label] if label.ends_with("PRIVATE KEY") => {
                "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs \
                 may have been switched"
                    .to_owned()
            }
            labels => format!(
                "tls: failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM blocks of the \
                 following types: [{}]",
                labels.join(" ")
            ),
        });
    }
    let keys = bytes::pem_labels(&field("tls.key"));
    if keys.iter().any(|label| label == "PRIVATE KEY" || label.ends_with(" PRIVATE KEY")) {
        return None;
    }
    Some(match keys.as_slice() {
        [] => "tls: failed to find any PEM data in key input".to_owned(),
        [label] if label == "CERTIFICATE" => {
            "tls: found a certificate rather than a key in the PEM for the private key".to_owned()
        }
        labels => format!(
            "tls: failed to find PEM block with type ending in \"PRIVATE KEY\" in key input after skipping PEM blocks \
             of the following types: [{}]",
            labels.join(" ")
        ),
    })
}

const STORAGE_CLASS: (&str, &str) = (
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

fn persistent_volume(volume: &Value) -> Vec<String> {
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

fn claim(claim: &Value) -> Vec<String> {
    let mut warnings = annotations(claim, &[STORAGE_CLASS]);
    for name in ["requests", "limits"] {
        let amount = Quantity::from_json(claim.at(&format!("spec.resources.{name}.storage")));
        if let Ok(amount) = amount
            && amount.milli_value() % 1000 != 0
        {
            let amount = quote(&amount.to_string());
            warnings.push(format!(
                "spec.resources.{name}[storage]: fractional byte value {amount} is invalid, must be an integer"
            ));
        }
    }
    warnings
}

fn annotations(object: &Value, deprecated: &[(&str, &str)]) -> Vec<String> {
    let present = object.map_at("metadata.annotations");
    let deprecated = deprecated.iter().filter(|(name, _)| present.contains_key(*name));
    deprecated.map(|(name, text)| format!("metadata.annotations[{name}]: {text}")).collect()
}
