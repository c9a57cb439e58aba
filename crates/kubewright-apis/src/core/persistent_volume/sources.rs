//! Validation of the volume source of a PersistentVolume: exactly one, with its required fields.
//!
//! Most sources belong to removed plugins, for which only required fields are checked.

use serde_json::{Map, Value};

use crate::validation::{one_of, required};
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::meta;
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

/// Sources in upstream's order, and the required strings of each.
const SOURCES: [(&str, &[&str]); 22] = [
    ("hostPath", &["path"]),
    ("gcePersistentDisk", &["pdName"]),
    ("awsElasticBlockStore", &["volumeID"]),
    ("glusterfs", &["endpoints", "path"]),
    ("flocker", &[]),
    ("nfs", &["server", "path"]),
    ("rbd", &["image"]),
    ("quobyte", &["registry", "volume"]),
    ("cephfs", &[]),
    ("iscsi", &["targetPortal", "iqn"]),
    ("cinder", &["volumeID"]),
    ("fc", &[]),
    ("flexVolume", &["driver"]),
    ("azureFile", &["secretName", "shareName"]),
    ("vsphereVolume", &["volumePath"]),
    ("photonPersistentDisk", &["pdID"]),
    ("portworxVolume", &["volumeID"]),
    ("azureDisk", &["diskName", "diskURI"]),
    ("scaleIO", &["gateway", "system", "volumeName"]),
    ("local", &["path"]),
    ("storageos", &["volumeName"]),
    ("csi", &[]),
];

const HOST_PATH_TYPES: [&str; 8] =
    ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];

/// The volume sources of a spec, without other fields.
pub(super) fn only(spec: &Value) -> Value {
    let present = SOURCES.iter().filter(|(name, _)| spec.has(name));
    Value::Object(present.map(|(name, _)| ((*name).to_owned(), spec.at(name).clone())).collect::<Map<_, _>>())
}

/// Validates the volume source of the PersistentVolume `name`.
pub(super) fn validate(spec: &Value, name: &str, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut found = false;
    for (source, needed) in SOURCES.iter().filter(|(source, _)| spec.has(source)) {
        // Upstream does not report this one as a second source.
        if found && *source != "flexVolume" {
            let shown = if *source == "cephfs" { "cephFS" } else { source };
            errors.push(FieldError::forbidden(&path.child(shown), "may not specify more than 1 volume type"));
            continue;
        }
        found = true;
        let shown = if *source == "gcePersistentDisk" { "persistentDisk" } else { source };
        errors.extend(one(spec, source, needed, name, &path.child(shown)));
        if *source == "local" && !spec.has("nodeAffinity") {
            let detail = "Local volume requires node affinity";
            errors.push(FieldError::required(&path.child("nodeAffinity"), detail));
        }
    }
    if !found {
        errors.push(FieldError::required(path, "must specify a volume type"));
    }
    errors
}

/// A subset of Go's `path.Clean`, sufficient to detect the root.
pub(super) fn clean(path: &str) -> &str {
    if !path.is_empty()
        && path.split('/').all(|step| matches!(step, "" | "." | ".."))
        && path.starts_with('/')
    {
        return "/";
    }
    path
}

fn one(spec: &Value, name: &str, needed: &[&str], volume: &str, path: &Path) -> ErrorList {
    let source = spec.at(name);
    let mut errors: ErrorList =
        needed.iter().filter_map(|field| required(source.str_at(field), &path.child(field))).collect();
    match name {
        "hostPath" if errors.is_empty() => {
            errors.extend(no_backsteps(source.str_at("path"), &path.child("path")));
            errors.extend(one_of(source.str_at("type"), &HOST_PATH_TYPES, &path.child("type")));
        }
        "local" if errors.is_empty() => {
            errors.extend(no_backsteps(source.str_at("path"), &path.child("path")));
        }
        "nfs" if !source.str_at("path").is_empty() && !source.str_at("path").starts_with('/') => {
            let detail = "must be an absolute path";
            errors.push(FieldError::invalid(&path.child("path"), source.str_at("path"), detail));
        }
        "gcePersistentDisk" | "awsElasticBlockStore" => {
            if let Some(partition) =
                source.int_at("partition").filter(|partition| !(0..=255).contains(partition))
            {
                let detail = "must be between 0 and 255, inclusive";
                errors.push(FieldError::invalid(&path.child("partition"), partition, detail));
            }
        }
        "rbd" | "cephfs" if source.list_at("monitors").is_empty() => {
            errors.insert(0, FieldError::required(&path.child("monitors"), ""));
        }
        "iscsi" => errors.extend(iscsi(source, volume, path)),
        "cinder" | "storageos" => errors.extend(secret_reference(source, "secretRef", path)),
        "csi" => errors.extend(csi(source, path)),
        _ => {}
    }
    errors
}

fn iscsi(source: &Value, volume: &str, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let portal = source.str_at("targetPortal");
    if source.has("initiatorName") && volume.len() + 1 + portal.len() > 64 {
        let detail = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if \
                      iscsi.initiatorName is specified.";
        errors.push(FieldError::invalid(&path.child("targetportal"), portal, detail));
    }
    if let Some(lun) = source.int_at("lun").filter(|lun| !(0..=255).contains(lun)) {
        errors.push(FieldError::invalid(&path.child("lun"), lun, "must be between 0 and 255, inclusive"));
    }
    let authenticated = source.bool_at("chapAuthDiscovery") || source.bool_at("chapAuthSession");
    if authenticated && !source.has("secretRef") {
        errors.push(FieldError::required(&path.child("secretRef"), ""));
    }
    if source.has("secretRef") {
        errors.extend(required(source.str_at("secretRef.name"), &path.child("secretRef").child("name")));
    }
    errors
}

fn csi(source: &Value, path: &Path) -> ErrorList {
    let mut errors = driver_name(source.str_at("driver"), &path.child("driver"));
    errors.extend(required(source.str_at("volumeHandle"), &path.child("volumeHandle")));
    let secrets = ["controllerPublish", "controllerExpand", "nodePublish", "nodeExpand"];
    for name in secrets.map(|step| format!("{step}SecretRef")) {
        let secret = source.at(&name);
        if secret.is_null() {
            continue;
        }
        let path = path.child(&name);
        errors.extend(named(secret.str_at("name"), names::dns1123_subdomain, &path.child("name")));
        errors.extend(named(secret.str_at("namespace"), names::dns1123_label, &path.child("namespace")));
    }
    errors
}

fn named(value: &str, check: fn(&str) -> Vec<String>, path: &Path) -> ErrorList {
    if value.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    meta::invalid(path, value, check(value)).collect()
}

pub(crate) fn driver_name(name: &str, path: &Path) -> ErrorList {
    if name.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let mut errors = ErrorList::new();
    if name.len() > names::LABEL_MAX_LENGTH {
        errors.push(FieldError::too_long(path, names::LABEL_MAX_LENGTH));
    }
    errors.extend(meta::invalid(path, name, names::dns1123_subdomain(&name.to_lowercase())));
    errors
}

fn secret_reference(source: &Value, name: &str, path: &Path) -> ErrorList {
    let secret = source.at(name);
    if secret.is_null() {
        return ErrorList::new();
    }
    let path = path.child(name);
    ["name", "namespace"]
        .iter()
        .filter_map(|field| required(secret.str_at(field), &path.child(field)))
        .collect()
}

fn no_backsteps(value: &str, path: &Path) -> Option<FieldError> {
    value
        .split('/')
        .any(|step| step == "..")
        .then(|| FieldError::invalid(path, value, "must not contain '..'"))
}
