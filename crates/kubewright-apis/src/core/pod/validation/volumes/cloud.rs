//! Validation of vendor-specific volume sources. Most plugins are removed, but existing objects may still use
//! them.

use serde_json::Value;

use crate::core::pod::validation::checks;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::object::Fields as _;

fn all_required(source: &Value, names: &[&str], path: &Path, errors: &mut ErrorList) {
    for name in names {
        checks::required(source, name, path, errors);
    }
}

fn partition(source: &Value, path: &Path, errors: &mut ErrorList) {
    let value = source.int_at("partition").unwrap_or_default();
    if !(0..=255).contains(&value) {
        // Zero is valid, contrary to the message.
        let detail = "must be between 1 and 255, inclusive";
        errors.push(FieldError::invalid(&path.child("partition"), value, detail));
    }
}

fn secret_name(source: &Value, path: &Path, errors: &mut ErrorList) {
    if source.has("secretRef") {
        checks::required(source.at("secretRef"), "name", &path.child("secretRef"), errors);
    }
}

pub(super) fn gce_persistent_disk(source: &Value, path: &Path, errors: &mut ErrorList) {
    all_required(source, &["pdName"], path, errors);
    partition(source, path, errors);
}

pub(super) fn aws_elastic_block_store(source: &Value, path: &Path, errors: &mut ErrorList) {
    all_required(source, &["volumeID"], path, errors);
    partition(source, path, errors);
}

pub(super) fn glusterfs(source: &Value, path: &Path, errors: &mut ErrorList) {
    all_required(source, &["endpoints", "path"], path, errors);
}

pub(super) fn flocker(source: &Value, path: &Path, errors: &mut ErrorList) {
    let (name, uuid) = (source.str_at("datasetName"), source.str_at("datasetUUID"));
    if name.is_empty() && uuid.is_empty() {
        errors.push(FieldError::required(path, "one of datasetName and datasetUUID is required"));
    }
    if !name.is_empty() && !uuid.is_empty() {
        let detail = "datasetName and datasetUUID can not be specified simultaneously";
        errors.push(FieldError::invalid(path, "resource", detail));
    }
    if name.contains('/') {
        errors.push(FieldError::invalid(&path.child("datasetName"), name, "must not contain '/'"));
    }
}

pub(super) fn rbd(source: &Value, path: &Path, errors: &mut ErrorList) {
    monitors(source, path, errors);
    all_required(source, &["image"], path, errors);
}

pub(super) fn cephfs(source: &Value, path: &Path, errors: &mut ErrorList) {
    monitors(source, path, errors);
}

fn monitors(source: &Value, path: &Path, errors: &mut ErrorList) {
    if source.list_at("monitors").is_empty() {
        errors.push(FieldError::required(&path.child("monitors"), ""));
    }
}

pub(super) fn cinder(source: &Value, path: &Path, errors: &mut ErrorList) {
    all_required(source, &["volumeID"], path, errors);
    secret_name(source, path, errors);
}

pub(super) fn quobyte(source: &Value, path: &Path, errors: &mut ErrorList) {
    let detail = "must be a host:port pair or multiple pairs separated by commas";
    let registry = source.str_at("registry");
    if registry.is_empty() {
        errors.push(FieldError::required(&path.child("registry"), detail));
    } else if source.str_at("tenant").len() >= 65 {
        let detail = "must be a UUID and may not exceed a length of 64 characters";
        errors.push(FieldError::required(&path.child("tenant"), detail));
    } else {
        for _ in registry.split(',').filter(|pair| !is_host_and_port(pair)) {
            errors.push(FieldError::invalid(&path.child("registry"), registry, detail));
        }
    }
    all_required(source, &["volume"], path, errors);
}

/// Whether `pair` is `host:port`. A host with colons is in brackets. Both parts may be empty.
fn is_host_and_port(pair: &str) -> bool {
    let Some((host, port)) = pair.rsplit_once(':') else { return false };
    let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    match bracketed {
        Some(host) => !host.contains(['[', ']']),
        None => !host.contains([':', '[', ']']) && !port.contains(['[', ']']),
    }
}

pub(super) fn flex(source: &Value, path: &Path, errors: &mut ErrorList) {
    all_required(source, &["driver"], path, errors);
    for key in source.map_at("options").keys() {
        let namespace = key.split_once('/').map_or(key.as_str(), |(namespace, _)| namespace);
        let namespace = format!(".{}", namespace.to_lowercase());
        if namespace.ends_with(".kubernetes.io") || namespace.ends_with(".k8s.io") {
            let detail = "kubernetes.io and k8s.io namespaces are reserved";
            errors.push(FieldError::invalid(&path.child("options").key(key), key.as_str(), detail));
        }
    }
}

pub(super) fn azure_file(source: &Value, path: &Path, errors: &mut ErrorList) {
    all_required(source, &["secretName", "shareName"], path, errors);
}

pub(super) fn azure_disk(source: &Value, path: &Path, errors: &mut ErrorList) {
    all_required(source, &["diskName", "diskURI"], path, errors);
    checks::optional_one_of(source, "cachingMode", &["None", "ReadOnly", "ReadWrite"], path, errors);
    checks::optional_one_of(source, "kind", &["Dedicated", "Managed", "Shared"], path, errors);
    let uri = source.str_at("diskURI");
    let uri_path = path.child("diskURI");
    match source.at("kind").as_str() {
        Some("Managed") if !uri.starts_with("/subscriptions/") => {
            let form = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}";
            errors.push(FieldError::not_supported(&uri_path, uri, &[form]));
        }
        Some(kind) if kind != "Managed" && !uri.starts_with("https://") => {
            let form = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd";
            errors.push(FieldError::not_supported(&uri_path, uri, &[form]));
        }
        _ => {}
    }
}

pub(super) fn vsphere(source: &Value, path: &Path, errors: &mut ErrorList) {
    all_required(source, &["volumePath"], path, errors);
}

pub(super) fn photon_persistent_disk(source: &Value, path: &Path, errors: &mut ErrorList) {
    all_required(source, &["pdID"], path, errors);
}

pub(super) fn portworx(source: &Value, path: &Path, errors: &mut ErrorList) {
    all_required(source, &["volumeID"], path, errors);
}

pub(super) fn scale_io(source: &Value, path: &Path, errors: &mut ErrorList) {
    all_required(source, &["gateway", "system", "volumeName"], path, errors);
}

pub(super) fn storage_os(source: &Value, path: &Path, errors: &mut ErrorList) {
    match source.str_at("volumeName") {
        "" => errors.push(FieldError::required(&path.child("volumeName"), "")),
        name => checks::dns_label(name, &path.child("volumeName"), errors),
    }
    let namespace = source.str_at("volumeNamespace");
    if !namespace.is_empty() {
        checks::dns_label(namespace, &path.child("volumeNamespace"), errors);
    }
    secret_name(source, path, errors);
}
