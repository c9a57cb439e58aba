//! Validation of security contexts of pods and containers.

mod windows;

use std::collections::HashSet;

use serde_json::Value;

use super::{checks, internal};
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

pub(super) use windows::host_process;

const SYSCTL_MAX_LENGTH: usize = 253;
const SYSCTL: &str = r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
const PROFILE_TYPES: [&str; 3] = ["Localhost", "RuntimeDefault", "Unconfined"];

pub(super) fn pod(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let context = spec.at("securityContext");
    if context.is_null() {
        return;
    }
    let path = path.child("securityContext");
    for name in ["fsGroup", "runAsUser", "runAsGroup"] {
        id(context.at(name), &path.child(name), errors);
    }
    for (group, path) in checks::items(context, "supplementalGroups", &path) {
        id(group, &path, errors);
    }
    if spec.bool_at("shareProcessNamespace") && spec.bool_at("hostPID") {
        errors.push(FieldError::invalid(
            &path.child("shareProcessNamespace"),
            true,
            "ShareProcessNamespace and HostPID cannot both be enabled",
        ));
    }
    sysctls(spec, &path, errors);
    checks::optional_one_of(context, "fsGroupChangePolicy", &["Always", "OnRootMismatch"], &path, errors);
    seccomp(context, &path, errors);
    windows::options(context.at("windowsOptions"), &path.child("windowsOptions"), errors);
    app_armor(context.at("appArmorProfile"), &path.child("appArmorProfile"), errors);
    checks::optional_one_of(context, "supplementalGroupsPolicy", &["Merge", "Strict"], &path, errors);
    // The policy `MountOption` needs a disabled feature.
    checks::optional_one_of(context, "seLinuxChangePolicy", &["Recursive"], &path, errors);
}

/// Validates the security context of a container. Privileged containers are allowed.
pub(super) fn container(context: &Value, has_host_users: bool, path: &Path, errors: &mut ErrorList) {
    if context.is_null() {
        return;
    }
    for name in ["runAsUser", "runAsGroup"] {
        id(context.at(name), &path.child(name), errors);
    }
    checks::optional_one_of(context, "procMount", &["Default", "Unmasked"], path, errors);
    if has_host_users && context.str_at("procMount") == "Unmasked" {
        let detail = "`hostUsers` must be false to use `Unmasked`";
        errors.push(FieldError::invalid(&path.child("procMount"), "Unmasked", detail));
    }
    seccomp(context, path, errors);
    if context.at("allowPrivilegeEscalation") == &Value::Bool(false) {
        let printed = || internal::compact("SecurityContext", context);
        if context.bool_at("privileged") {
            let detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
            errors.push(FieldError::invalid_printed(path, printed(), detail));
        }
        for _ in checks::strings(context.at("capabilities"), "add").filter(|added| *added == "CAP_SYS_ADMIN")
        {
            let detail =
                "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
            errors.push(FieldError::invalid_printed(path, printed(), detail));
        }
    }
    windows::options(context.at("windowsOptions"), &path.child("windowsOptions"), errors);
    app_armor(context.at("appArmorProfile"), &path.child("appArmorProfile"), errors);
}

pub(crate) fn app_armor(profile: &Value, path: &Path, errors: &mut ErrorList) {
    if profile.is_null() {
        return;
    }
    let name_path = path.child("localhostProfile");
    let name = profile.at("localhostProfile").as_str();
    match (profile.str_at("type"), name) {
        ("Localhost", name) => {
            let required = "must be set when AppArmor type is Localhost";
            let name = name.unwrap_or_default();
            if name.trim() != name {
                errors.push(FieldError::invalid(&name_path, name, "must not be padded with whitespace"));
            } else if name.is_empty() {
                errors.push(FieldError::required(&name_path, required));
            }
            if name.len() > 4095 {
                errors.push(FieldError::too_long(&name_path, 4095));
            }
        }
        ("RuntimeDefault" | "Unconfined", Some(name)) => {
            let detail = "can only be set when AppArmor type is Localhost";
            errors.push(FieldError::invalid(&name_path, name, detail));
        }
        ("RuntimeDefault" | "Unconfined", None) => {}
        ("", _) => {
            let detail = "type is required when appArmorProfile is set";
            errors.push(FieldError::required(&path.child("type"), detail));
        }
        (other, _) => errors.push(FieldError::not_supported(&path.child("type"), other, &PROFILE_TYPES)),
    }
}

/// Validates a user or group ID, if set.
pub(super) fn id(value: &Value, path: &Path, errors: &mut ErrorList) {
    if let Some(id) = value.as_i64() {
        checks::number(id, names::user_id(id), path, errors);
    }
}

fn seccomp(context: &Value, path: &Path, errors: &mut ErrorList) {
    let profile = context.at("seccompProfile");
    if profile.is_null() {
        return;
    }
    let path = path.child("seccompProfile");
    let ty = profile.str_at("type");
    if ty.is_empty() {
        errors.push(FieldError::required(&path.child("type"), "type is required when seccompProfile is set"));
    } else if !PROFILE_TYPES.contains(&ty) {
        errors.push(FieldError::not_supported(&path.child("type"), ty, &PROFILE_TYPES));
    }
    let name_path = path.child("localhostProfile");
    match (ty, profile.at("localhostProfile").as_str()) {
        ("Localhost", None) => {
            errors.push(FieldError::required(&name_path, "must be set when seccomp type is Localhost"));
        }
        ("Localhost", Some(name)) => checks::local_path(name, &name_path, errors),
        (_, None) => {}
        (_, Some(_)) => {
            let printed = internal::compact("SeccompProfile", profile);
            let detail = "can only be set when seccomp type is Localhost";
            errors.push(FieldError::invalid_printed(&name_path, printed, detail));
        }
    }
}

fn sysctls(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let mut seen = HashSet::new();
    for (sysctl, path) in checks::items(spec.at("securityContext"), "sysctls", path) {
        let (name, path) = (sysctl.str_at("name"), path.child("name"));
        if name.is_empty() {
            errors.push(FieldError::required(&path, ""));
        } else if !is_sysctl(name) {
            let detail = format!("must have at most {SYSCTL_MAX_LENGTH} characters and match regex {SYSCTL}");
            errors.push(FieldError::invalid(&path, name, detail));
        } else if seen.contains(name) {
            errors.push(FieldError::duplicate(&path, name));
        }
        // Sysctls of a host namespace cannot be set for a pod that shares it.
        match namespace(name) {
            Some("net") if spec.bool_at("hostNetwork") => {
                errors.push(FieldError::invalid(
                    &path,
                    name,
                    "may not be specified when 'hostNetwork' is true",
                ));
            }
            Some("ipc") if spec.bool_at("hostIPC") => {
                errors.push(FieldError::invalid(&path, name, "may not be specified when 'hostIPC' is true"));
            }
            _ => {}
        }
        seen.insert(name);
    }
}

fn is_sysctl(name: &str) -> bool {
    let is_word = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let is_segment = |part: &str| {
        let bytes = part.as_bytes();
        bytes.first().copied().is_some_and(is_word)
            && bytes.last().copied().is_some_and(is_word)
            && bytes.iter().all(|&b| is_word(b) || matches!(b, b'-' | b'_'))
    };
    name.len() <= SYSCTL_MAX_LENGTH && name.split(['.', '/']).all(is_segment)
}

/// The kernel namespace of a sysctl. If the first separator is a slash, slashes and dots are swapped.
fn namespace(name: &str) -> Option<&'static str> {
    let swapped: String;
    let name = match name.find(['.', '/']) {
        Some(at) if name.as_bytes()[at] == b'/' => {
            swapped = name
                .chars()
                .map(|c| {
                    if c == '/' {
                        '.'
                    } else if c == '.' {
                        '/'
                    } else {
                        c
                    }
                })
                .collect();
            &swapped
        }
        _ => name,
    };
    match name {
        "kernel.sem"
        | "kernel.shmall"
        | "kernel.shmmax"
        | "kernel.shmmni"
        | "kernel.shm_rmid_forced"
        | "kernel.shm"
        | "kernel.msgmax"
        | "kernel.msgmnb"
        | "kernel.msgmni"
        | "kernel.msg" => Some("ipc"),
        _ if name.starts_with("fs.mqueue.") => Some("ipc"),
        _ if name.starts_with("net.") => Some("net"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_namespace_of_a_sysctl_is_found_with_dots_and_slashes() {
        assert_eq!(namespace("net.ipv4.ip_forward"), Some("net"));
        assert_eq!(namespace("net/ipv4/conf/eno2.100/rp_filter"), Some("net"));
        assert_eq!(namespace("kernel.shmmax"), Some("ipc"));
        assert_eq!(namespace("vm.swappiness"), None);
        assert!(is_sysctl("net.ipv4.conf.eth0/1.rp_filter"));
        assert!(!is_sysctl("net..a"));
    }
}
