//! Validation of Kubernetes' own volume sources, NFS, iSCSI and Fibre Channel.

use serde_json::Value;

use crate::core::pod::validation::{checks, claims};
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::quantity::Quantity;

const PULL_POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];
const HOST_PATH_TYPES: [&str; 8] =
    ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];

pub(super) fn empty_dir(source: &Value, path: &Path, errors: &mut ErrorList) {
    if Quantity::from_json(source.at("sizeLimit")).is_ok_and(|limit| limit.sign() < 0) {
        let detail = "SizeLimit field must be a valid resource quantity";
        errors.push(FieldError::forbidden(&path.child("sizeLimit"), detail));
    }
}

pub(super) fn host_path(source: &Value, path: &Path, errors: &mut ErrorList) {
    let value = source.str_at("path");
    if value.is_empty() {
        errors.push(FieldError::required(&path.child("path"), ""));
        return;
    }
    checks::no_backsteps(value, &path.child("path"), errors);
    checks::optional_one_of(source, "type", &HOST_PATH_TYPES, path, errors);
}

pub(super) fn git_repo(source: &Value, path: &Path, errors: &mut ErrorList) {
    checks::required(source, "repository", path, errors);
    checks::local_path(source.str_at("directory"), &path.child("directory"), errors);
}

pub(super) fn secret(source: &Value, path: &Path, errors: &mut ErrorList) {
    checks::required(source, "secretName", path, errors);
    files(source, path, errors);
}

pub(super) fn config_map(source: &Value, path: &Path, errors: &mut ErrorList) {
    checks::required(source, "name", path, errors);
    files(source, path, errors);
}

fn files(source: &Value, path: &Path, errors: &mut ErrorList) {
    checks::file_mode(source, "defaultMode", path, errors);
    for (item, path) in checks::items(source, "items", path) {
        key_to_path(item, &path, errors);
    }
}

/// Validates a key of a secret or config map and its file path.
pub(super) fn key_to_path(item: &Value, path: &Path, errors: &mut ErrorList) {
    checks::required(item, "key", path, errors);
    checks::required(item, "path", path, errors);
    checks::local_file(item.str_at("path"), &path.child("path"), errors);
    checks::file_mode(item, "mode", path, errors);
}

pub(super) fn claim(source: &Value, path: &Path, errors: &mut ErrorList) {
    checks::required(source, "claimName", path, errors);
}

pub(super) fn nfs(source: &Value, path: &Path, errors: &mut ErrorList) {
    checks::required(source, "server", path, errors);
    checks::required(source, "path", path, errors);
    let value = source.str_at("path");
    if !value.starts_with('/') {
        errors.push(FieldError::invalid(&path.child("path"), value, "must be an absolute path"));
    }
}

pub(super) fn iscsi(source: &Value, path: &Path, errors: &mut ErrorList) {
    checks::required(source, "targetPortal", path, errors);
    checks::required(source, "iqn", path, errors);
    let name = source.str_at("iqn");
    if !name.is_empty() {
        initiator(name, &path.child("iqn"), errors);
    }
    let lun = source.int_at("lun").unwrap_or_default();
    checks::number(lun, names::in_range(lun, 0, 255), &path.child("lun"), errors);
    if (source.bool_at("chapAuthDiscovery") || source.bool_at("chapAuthSession")) && !source.has("secretRef")
    {
        errors.push(FieldError::required(&path.child("secretRef"), ""));
    }
    if let Some(name) = source.at("initiatorName").as_str() {
        initiator(name, &path.child("initiatorname"), errors);
    }
}

/// Validates an iSCSI name in one of three formats.
fn initiator(name: &str, path: &Path, errors: &mut ErrorList) {
    let valid = match name.get(..3) {
        Some("iqn") => is_iqn(name),
        Some("eui") => is_hashed(name, 16),
        Some("naa") => is_hashed(name, 32),
        _ => {
            let detail = "must be valid format starting with iqn, eui, or naa";
            errors.push(FieldError::invalid(path, name, detail));
            return;
        }
    };
    if !valid {
        errors.push(FieldError::invalid(path, name, "must be valid format"));
    }
}

/// `iqn.2001-04.com.example:storage.disk1`.
fn is_iqn(name: &str) -> bool {
    let Some((authority, unique)) = name.split_once(':') else { return false };
    let Some(rest) = authority.strip_prefix("iqn.") else { return false };
    let Some((date, domain)) = rest.split_once('.') else { return false };
    let is_date = date.len() == 7
        && date.bytes().enumerate().all(|(at, b)| if at == 4 { b == b'-' } else { b.is_ascii_digit() });
    is_date
        && !domain.is_empty()
        && domain.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.'))
        && !unique.is_empty()
        && !unique.contains([',', ';', '*', '&', '$', '|'])
        && !unique.contains(char::is_whitespace)
}

/// `eui.` or `naa.` and `length` letters and digits.
fn is_hashed(name: &str, length: usize) -> bool {
    name.len() == length + 4 && name.bytes().skip(4).all(|b| b.is_ascii_alphanumeric())
}

pub(super) fn fibre_channel(source: &Value, path: &Path, errors: &mut ErrorList) {
    let targets = source.list_at("targetWWNs");
    let path_of_targets = path.child("targetWWNs");
    let has_ids = !source.list_at("wwids").is_empty();
    if targets.is_empty() && !has_ids {
        let detail = "must specify either targetWWNs or wwids, but not both";
        errors.push(FieldError::required(&path_of_targets, detail));
    }
    if !targets.is_empty() && has_ids {
        let detail = "targetWWNs and wwids can not be specified simultaneously";
        errors.push(FieldError::invalid(&path_of_targets, targets.to_vec(), detail));
    }
    if !targets.is_empty() {
        if source.has("lun") {
            checks::in_range(source, "lun", 0, 255, path, errors);
        } else {
            errors
                .push(FieldError::required(&path.child("lun"), "lun is required if targetWWNs is specified"));
        }
    }
}

pub(super) fn csi(source: &Value, path: &Path, errors: &mut ErrorList) {
    let driver = source.str_at("driver");
    let driver_path = path.child("driver");
    if driver.is_empty() {
        errors.push(FieldError::required(&driver_path, ""));
    } else {
        if driver.len() > 63 {
            errors.push(FieldError::too_long(&driver_path, 63));
        }
        checks::named(driver, names::dns1123_subdomain(&driver.to_lowercase()), &driver_path, errors);
    }
    if let Some(secret) = source.at("nodePublishSecretRef").as_object() {
        match secret.get("name").and_then(Value::as_str).unwrap_or_default() {
            "" => errors.push(FieldError::required(&path.child("nodePublishSecretRef").child("name"), "")),
            name => checks::dns_subdomain(name, &path.child("name"), errors),
        }
    }
}

pub(super) fn ephemeral(source: &Value, path: &Path, errors: &mut ErrorList) {
    let path = path.child("volumeClaimTemplate");
    if source.has("volumeClaimTemplate") {
        claims::template(source.at("volumeClaimTemplate"), &path, errors);
    } else {
        errors.push(FieldError::required(&path, ""));
    }
}

pub(super) fn image(source: &Value, path: &Path, errors: &mut ErrorList) {
    checks::required(source, "reference", path, errors);
    checks::one_of(source.str_at("pullPolicy"), &PULL_POLICIES, &path.child("pullPolicy"), errors);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iscsi_names_have_one_of_three_formats() {
        for name in ["iqn.2001-04.com.example:storage.disk1", "eui.0123456789abcdef"] {
            let mut errors = ErrorList::new();
            initiator(name, &Path::new("iqn"), &mut errors);
            assert!(errors.is_empty(), "{name}");
        }
        for name in ["iqn.2001-4.com.example:x", "iqn.2001-04.com:a b", "eui.0123", "naa.1", "x", "iq"] {
            let mut errors = ErrorList::new();
            initiator(name, &Path::new("iqn"), &mut errors);
            assert_eq!(errors.len(), 1, "{name}");
        }
    }
}
