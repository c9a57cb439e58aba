//! The row of a PersistentVolume, and cells that PersistentVolumeClaims have too.

use serde_json::Value;

use crate::table::row::{Row, UNSET, joined, non_empty};
use kubewright_apimachinery::object::Fields as _;

pub(super) fn cells(row: &Row<'_>) -> Vec<Value> {
    let claim = row.object.at("spec.claimRef");
    let claim = if claim.is_null() {
        String::new()
    } else {
        format!("{}/{}", claim.str_at("namespace"), claim.str_at("name"))
    };
    vec![
        row.name(),
        storage(row, "spec.capacity"),
        access_modes(row.list("spec.accessModes")).into(),
        row.text("spec.persistentVolumeReclaimPolicy"),
        phase(row),
        claim.into(),
        class(row),
        row.optional("spec.volumeAttributesClassName", UNSET),
        row.text("status.reason"),
        row.age(),
        row.optional("spec.volumeMode", UNSET),
    ]
}

pub(crate) fn phase(row: &Row<'_>) -> Value {
    if row.is_deleted() { "Terminating".into() } else { row.text("status.phase") }
}

/// The storage quantity at `path`.
pub(crate) fn storage(row: &Row<'_>, path: &str) -> Value {
    non_empty(row.object.at(path).str_at("storage"), "0").into()
}

/// The storage class. The annotation takes precedence over the field.
pub(crate) fn class(row: &Row<'_>) -> Value {
    let annotated = row.annotation("volume.beta.kubernetes.io/storage-class");
    annotated.map_or_else(|| row.text("spec.storageClassName"), Into::into)
}

pub(crate) fn access_modes(modes: &[Value]) -> String {
    let known = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let is_given = |mode: &str| modes.iter().any(|given| given == mode);
    joined(known.into_iter().filter(|(mode, _)| is_given(mode)).map(|(_, short)| short), ",")
}
