//! Validation of environment variables and their sources.

use serde_json::Value;

use super::checks;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::quantity::Quantity;

/// Pod fields that environment variables may refer to.
const FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

/// All pod fields. The allowed ones depend on the context.
const KNOWN_FIELDS: [&str; 15] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.host",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.phase",
    "status.podIP",
    "status.podIPs",
];

const RESOURCES: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

const BYTE_DIVISORS: [&str; 13] =
    ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];

/// Validates `env` and `envFrom` of a container.
pub(super) fn environment(container: &Value, path: &Path, errors: &mut ErrorList) {
    for (variable, path) in checks::items(container, "env", path) {
        let name = variable.str_at("name");
        if name.is_empty() {
            errors.push(FieldError::required(&path.child("name"), ""));
        } else {
            checks::named(name, names::relaxed_env_var_name(name), &path.child("name"), errors);
        }
        if variable.has("valueFrom") {
            value_from(variable, &path.child("valueFrom"), errors);
        }
    }
    let list_path = path.child("envFrom");
    for (source, path) in checks::items(container, "envFrom", path) {
        all_from(source, &path, &list_path, errors);
    }
}

fn value_from(variable: &Value, path: &Path, errors: &mut ErrorList) {
    let source = variable.at("valueFrom");
    let mut count = 0;
    let mut present = |name: &str| {
        let there = source.has(name);
        count += usize::from(there);
        there
    };
    if present("fieldRef") {
        field_selector(source.at("fieldRef"), &FIELDS, &path.child("fieldRef"), errors);
    }
    if present("resourceFieldRef") {
        resource_selector(source.at("resourceFieldRef"), false, &path.child("resourceFieldRef"), errors);
    }
    for name in ["configMapKeyRef", "secretKeyRef"] {
        if present(name) {
            key_selector(source.at(name), &path.child(name), errors);
        }
    }
    if present("fileKeyRef") {
        file_key_selector(source.at("fileKeyRef"), &path.child("fileKeyRef"), errors);
    }
    let detail = if count == 0 {
        "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
    } else if !variable.str_at("value").is_empty() {
        "may not be specified when `value` is not empty"
    } else if count > 1 {
        "may not have more than one field specified at a time"
    } else {
        return;
    };
    errors.push(FieldError::invalid(path, "", detail));
}

fn all_from(source: &Value, path: &Path, list_path: &Path, errors: &mut ErrorList) {
    let prefix = source.str_at("prefix");
    if !prefix.is_empty() {
        checks::named(prefix, names::relaxed_env_var_name(prefix), &path.child("prefix"), errors);
    }
    let mut count = 0;
    for name in ["configMapRef", "secretRef"] {
        if !source.has(name) {
            continue;
        }
        count += 1;
        let name_path = path.child(name).child("name");
        match source.at(name).str_at("name") {
            "" => errors.push(FieldError::required(&name_path, "")),
            // Upstream validates it as a name prefix, which may end in a dash.
            name => {
                let messages = names::dns1123_subdomain(&names::mask_trailing_dash(name));
                checks::named(name, messages, &name_path, errors);
            }
        }
    }
    let detail = match count {
        0 => "must specify one of: `configMapRef` or `secretRef`",
        1 => return,
        _ => "may not have more than one field specified at a time",
    };
    errors.push(FieldError::invalid(list_path, "", detail));
}

fn key_selector(selector: &Value, path: &Path, errors: &mut ErrorList) {
    checks::dns_subdomain(selector.str_at("name"), &path.child("name"), errors);
    match selector.str_at("key") {
        "" => errors.push(FieldError::required(&path.child("key"), "")),
        key => checks::named(key, names::config_map_key(key), &path.child("key"), errors),
    }
}

fn file_key_selector(selector: &Value, path: &Path, errors: &mut ErrorList) {
    match selector.str_at("key") {
        "" => errors.push(FieldError::required(&path.child("key"), "")),
        key => checks::named(key, names::relaxed_env_var_name(key), &path.child("key"), errors),
    }
    match selector.str_at("volumeName") {
        "" => errors.push(FieldError::required(&path.child("volumeName"), "")),
        name => checks::dns_label(name, &path.child("volumeName"), errors),
    }
    match selector.str_at("path") {
        "" => errors.push(FieldError::required(&path.child("path"), "")),
        file => checks::no_backsteps(file, &path.child("path"), errors),
    }
}

/// Validates a reference to a pod field. `allowed` lists the allowed fields in alphabetical order.
pub(super) fn field_selector(selector: &Value, allowed: &[&str], path: &Path, errors: &mut ErrorList) {
    for name in ["apiVersion", "fieldPath"] {
        if selector.str_at(name).is_empty() {
            errors.push(FieldError::required(&path.child(name), ""));
            return;
        }
    }
    let version = selector.str_at("apiVersion");
    let field = selector.str_at("fieldPath");
    let subscript = subscripted(field);
    let conversion = match subscript {
        _ if version != "v1" => Some(format!("unsupported pod version: {version}")),
        Some(("metadata.annotations" | "metadata.labels", _)) => None,
        Some(_) => Some(format!("field label does not support subscript: {field}")),
        None if KNOWN_FIELDS.contains(&field) => None,
        None => Some(format!("field label not supported: {field}")),
    };
    if let Some(reason) = conversion {
        let detail = format!("error converting fieldPath: {reason}");
        errors.push(FieldError::invalid(&path.child("fieldPath"), field, detail));
        return;
    }
    // Replace the deprecated name.
    let field = if field == "spec.host" { "spec.nodeName" } else { field };
    match subscript {
        Some(("metadata.annotations", key)) => checks::label_key(&key.to_lowercase(), path, errors),
        Some((_, key)) => checks::label_key(key, path, errors),
        None if allowed.contains(&field) => {}
        None => errors.push(FieldError::not_supported(&path.child("fieldPath"), field, allowed)),
    }
}

/// Splits `metadata.labels['key']` into path and key.
fn subscripted(field: &str) -> Option<(&str, &str)> {
    let (path, key) = field.strip_suffix("']")?.split_once("['")?;
    (!path.is_empty()).then_some((path, key))
}

/// Validates a reference to a container's resource. In a volume it must include the container name.
pub(super) fn resource_selector(selector: &Value, of_volume: bool, path: &Path, errors: &mut ErrorList) {
    let resource = selector.str_at("resource");
    let is_huge_pages =
        resource.starts_with("requests.hugepages-") || resource.starts_with("limits.hugepages-");
    if of_volume && selector.str_at("containerName").is_empty() {
        errors.push(FieldError::required(&path.child("containerName"), ""));
    } else if resource.is_empty() {
        errors.push(FieldError::required(&path.child("resource"), ""));
    } else if !RESOURCES.contains(&resource) && !is_huge_pages {
        errors.push(FieldError::not_supported(&path.child("resource"), resource, &RESOURCES));
    }
    let Ok(divisor) = Quantity::from_json(selector.at("divisor")) else { return };
    if divisor.is_zero() {
        return;
    }
    let divisor = divisor.to_string();
    let of_bytes = |what: &str| {
        let known = BYTE_DIVISORS.contains(&divisor.as_str());
        let divisors = BYTE_DIVISORS.join(", ");
        (!known).then(|| format!("only divisor's values {divisors} are supported with the {what} resource"))
    };
    let detail = match resource {
        "limits.cpu" | "requests.cpu" => (!matches!(divisor.as_str(), "1" | "1m"))
            .then(|| "only divisor's values 1m and 1 are supported with the cpu resource".to_owned()),
        "limits.memory" | "requests.memory" => of_bytes("memory"),
        "limits.ephemeral-storage" | "requests.ephemeral-storage" => of_bytes("local ephemeral storage"),
        _ if is_huge_pages => of_bytes("hugepages"),
        _ => None,
    };
    if let Some(detail) = detail {
        errors.push(FieldError::invalid(&path.child("divisor"), resource, detail));
    }
}
