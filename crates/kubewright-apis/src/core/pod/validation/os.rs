//! Validation of `spec.os`: fields of the other operating system are forbidden.

use serde_json::Value;

use super::checks;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::object::Fields as _;

/// Fields that Windows pods may not have, in upstream's order. A dot separates the security context.
const NOT_ON_WINDOWS: [&str; 15] = [
    "securityContext.appArmorProfile",
    "securityContext.seLinuxOptions",
    "hostUsers",
    "hostPID",
    "hostIPC",
    "securityContext.seccompProfile",
    "securityContext.fsGroup",
    "securityContext.fsGroupChangePolicy",
    "securityContext.sysctls",
    "shareProcessNamespace",
    "securityContext.runAsUser",
    "securityContext.runAsGroup",
    "securityContext.supplementalGroups",
    "securityContext.supplementalGroupsPolicy",
    "securityContext.seLinuxChangePolicy",
];

/// Security context fields that Windows containers may not have.
const NOT_IN_WINDOWS_CONTAINERS: [&str; 10] = [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
];

/// Validates the operating system of a pod and the fields that depend on it.
pub(super) fn os(spec: &Value, path: &Path, errors: &mut ErrorList) {
    if !spec.has("os") {
        return;
    }
    match spec.str_at("os.name") {
        "" => errors.push(FieldError::required(&path.child("os").child("name"), "")),
        "linux" => linux(spec, path, errors),
        "windows" => windows(spec, path, errors),
        other => errors.push(FieldError::not_supported(&path.child("os"), other, &["linux", "windows"])),
    }
}

fn linux(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let of_containers = checks::containers(spec, path);
    for (holder, path) in std::iter::once((spec, path.clone())).chain(of_containers) {
        if holder.has("securityContext.windowsOptions") {
            let path = path.child("securityContext").child("windowsOptions");
            errors.push(FieldError::forbidden(&path, "windows options cannot be set for a linux pod"));
        }
    }
}

fn windows(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let detail = "cannot be set for a windows pod";
    for name in NOT_ON_WINDOWS {
        // `false` is accepted for some fields; others are rejected whenever they are set.
        let is_set = match name {
            "hostPID" | "hostIPC" => spec.bool_at(name),
            _ => spec.has(name),
        };
        if is_set {
            errors.push(FieldError::forbidden(&path.child(name), detail));
        }
    }
    for (container, path) in checks::containers(spec, path) {
        let path = path.child("securityContext");
        for name in NOT_IN_WINDOWS_CONTAINERS {
            if container.at("securityContext").has(name) {
                errors.push(FieldError::forbidden(&path.child(name), detail));
            }
        }
    }
}
