//! Rows of volumes, storage classes and CSI drivers.

use serde_json::Value;

use super::row::{NONE, Row, UNSET, joined, joined_list, non_empty};
use kubewright_apimachinery::object::Fields as _;

pub(super) fn persistent_volume(row: &Row<'_>) -> Vec<Value> {
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

pub(super) fn persistent_volume_claim(row: &Row<'_>) -> Vec<Value> {
    let is_bound = !row.str("spec.volumeName").is_empty();
    let (capacity, modes) = if is_bound {
        (storage(row, "status.capacity"), access_modes(row.list("status.accessModes")))
    } else {
        ("".into(), String::new())
    };
    vec![
        row.name(),
        phase(row),
        row.text("spec.volumeName"),
        capacity,
        modes.into(),
        class(row),
        row.optional("spec.volumeAttributesClassName", UNSET),
        row.age(),
        row.optional("spec.volumeMode", UNSET),
    ]
}

fn phase(row: &Row<'_>) -> Value {
    if row.is_deleted() { "Terminating".into() } else { row.text("status.phase") }
}

/// The storage quantity at `path`.
fn storage(row: &Row<'_>, path: &str) -> Value {
    non_empty(row.object.at(path).str_at("storage"), "0").into()
}

/// The storage class. The annotation takes precedence over the field.
fn class(row: &Row<'_>) -> Value {
    let annotated = annotation(row, "volume.beta.kubernetes.io/storage-class");
    annotated.map_or_else(|| row.text("spec.storageClassName"), Into::into)
}

fn access_modes(modes: &[Value]) -> String {
    let known = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let is_given = |mode: &str| modes.iter().any(|given| given == mode);
    joined(known.into_iter().filter(|(mode, _)| is_given(mode)).map(|(_, short)| short), ",")
}

pub(super) fn storage_class(row: &Row<'_>) -> Vec<Value> {
    let defaults =
        ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
    vec![
        class_name(row, &defaults),
        row.text("provisioner"),
        row.optional("reclaimPolicy", "Delete"),
        row.optional("volumeBindingMode", "Immediate"),
        row.flag("allowVolumeExpansion"),
        row.age(),
    ]
}

pub(super) fn volume_attributes_class(row: &Row<'_>) -> Vec<Value> {
    let defaults = ["volumeattributesclass.alpha.kubernetes.io/is-default-class"];
    vec![class_name(row, &defaults), row.text("driverName"), row.age()]
}

/// The name, with `(default)` if one of the annotations is set.
fn class_name(row: &Row<'_>, defaults: &[&str]) -> Value {
    let name = row.str("metadata.name");
    if defaults.iter().any(|key| annotation(row, key) == Some("true")) {
        format!("{name} (default)").into()
    } else {
        name.into()
    }
}

fn annotation<'a>(row: &Row<'a>, key: &str) -> Option<&'a str> {
    row.object.map_at("metadata.annotations").get(key).and_then(Value::as_str)
}

pub(super) fn volume_attachment(row: &Row<'_>) -> Vec<Value> {
    vec![
        row.name(),
        row.text("spec.attacher"),
        row.text("spec.source.persistentVolumeName"),
        row.text("spec.nodeName"),
        row.flag("status.attached"),
        row.age(),
    ]
}

pub(super) fn csi_driver(row: &Row<'_>) -> Vec<Value> {
    let requests = row.object.at("spec.tokenRequests").as_array();
    let audiences = requests.map(|requests| joined(requests.iter().map(|r| r.str_at("audience")), ","));
    vec![
        row.name(),
        row.object.at("spec.attachRequired").as_bool().unwrap_or(true).into(),
        row.flag("spec.podInfoOnMount"),
        row.flag("spec.storageCapacity"),
        audiences.as_deref().unwrap_or(UNSET).into(),
        row.flag("spec.requiresRepublish"),
        non_empty(&joined_list(row.list("spec.volumeLifecycleModes"), ","), NONE).into(),
        row.age(),
    ]
}

pub(super) fn csi_node(row: &Row<'_>) -> Vec<Value> {
    vec![row.name(), row.count("spec.drivers"), row.age()]
}
