//! Checks that many fields of pods and nodes share. They append upstream's errors to a list.

use serde_json::Value;

use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::meta;
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

pub(crate) const NOT_NEGATIVE: &str = "must be greater than or equal to 0";
const NOT_POSITIVE: &str = "must be greater than zero";
const FILE_MODE: &str = "must be a number between 0 and 0777 (octal), both inclusive";

/// The items of the list `name` with their paths.
pub(crate) fn items<'a>(
    parent: &'a Value,
    name: &str,
    path: &Path,
) -> impl Iterator<Item = (&'a Value, Path)> + use<'a> {
    let path = path.child(name);
    parent.list_at(name).iter().enumerate().map(move |(index, item)| (item, path.index(index)))
}

/// All containers of a pod in upstream's order.
pub(crate) fn containers<'a>(
    spec: &'a Value,
    path: &Path,
) -> impl Iterator<Item = (&'a Value, Path)> + use<'a> {
    items(spec, "initContainers", path).chain(items(spec, "containers", path)).chain(items(
        spec,
        "ephemeralContainers",
        path,
    ))
}

/// The strings of a list.
pub(crate) fn strings<'a>(parent: &'a Value, name: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    parent.list_at(name).iter().filter_map(Value::as_str)
}

/// Requires a non-empty string at `name`.
pub(crate) fn required(parent: &Value, name: &str, path: &Path, errors: &mut ErrorList) {
    if parent.str_at(name).is_empty() {
        errors.push(FieldError::required(&path.child(name), ""));
    }
}

/// Adds an error for each message about a name.
pub(crate) fn named(value: &str, messages: Vec<String>, path: &Path, errors: &mut ErrorList) {
    errors.extend(meta::invalid(path, value, messages));
}

pub(crate) fn dns_label(value: &str, path: &Path, errors: &mut ErrorList) {
    named(value, names::dns1123_label(value), path, errors);
}

pub(crate) fn dns_subdomain(value: &str, path: &Path, errors: &mut ErrorList) {
    named(value, names::dns1123_subdomain(value), path, errors);
}

/// Validates a label key (a qualified name).
pub(crate) fn label_key(value: &str, path: &Path, errors: &mut ErrorList) {
    named(value, names::label_key(value), path, errors);
}

/// Requires a value that is one of `supported`.
pub(crate) fn one_of(value: &str, supported: &[&str], path: &Path, errors: &mut ErrorList) {
    if value.is_empty() {
        errors.push(FieldError::required(path, ""));
    } else {
        supported_or_error(value, supported, path, errors);
    }
}

/// Validates that a value, if set, is one of `supported`.
pub(crate) fn optional_one_of(
    parent: &Value,
    name: &str,
    supported: &[&str],
    path: &Path,
    errors: &mut ErrorList,
) {
    if let Some(value) = parent.at(name).as_str() {
        supported_or_error(value, supported, &path.child(name), errors);
    }
}

fn supported_or_error(value: &str, supported: &[&str], path: &Path, errors: &mut ErrorList) {
    if !supported.contains(&value) {
        errors.push(FieldError::not_supported(path, value, supported));
    }
}

pub(crate) fn file_mode(parent: &Value, name: &str, path: &Path, errors: &mut ErrorList) {
    if let Some(mode) = parent.int_at(name)
        && !(0..=0o777).contains(&mode)
    {
        errors.push(FieldError::invalid(&path.child(name), mode, FILE_MODE));
    }
}

/// Validates that the number at `name` is not negative. An absent one is zero.
pub(crate) fn non_negative(parent: &Value, name: &str, path: &Path, errors: &mut ErrorList) {
    if let Some(value @ ..0) = parent.int_at(name) {
        errors.push(FieldError::invalid(&path.child(name), value, NOT_NEGATIVE));
    }
}

pub(crate) fn positive(value: i64, path: &Path, errors: &mut ErrorList) {
    if value <= 0 {
        errors.push(FieldError::invalid(path, value, NOT_POSITIVE));
    }
}

/// Validates that the number at `name`, if set, is from `low` to `high`.
pub(crate) fn in_range(parent: &Value, name: &str, low: i64, high: i64, path: &Path, errors: &mut ErrorList) {
    if let Some(value) = parent.int_at(name) {
        number(value, names::in_range(value, low, high), &path.child(name), errors);
    }
}

/// Adds an error for each message about a number.
pub(crate) fn number(value: i64, messages: Vec<String>, path: &Path, errors: &mut ErrorList) {
    errors.extend(messages.into_iter().map(|message| FieldError::invalid(path, value, message)));
}

/// Validates a port number or name.
pub(crate) fn port(port: &Value, path: &Path, errors: &mut ErrorList) {
    if let Some(name) = port.as_str() {
        named(name, names::port_name(name), path, errors);
    } else {
        let value = port.as_i64().unwrap_or_default();
        number(value, names::port_number(value), path, errors);
    }
}

/// Validates an IP address that is not among the old ones, with the legacy rules.
pub(crate) fn legacy_ip(value: &str, before: &[&str], path: &Path, errors: &mut ErrorList) {
    if !before.contains(&value) {
        named(value, names::legacy_ip(value, true), path, errors);
    }
}

/// Rejects paths that contain `..`.
pub(crate) fn no_backsteps(value: &str, path: &Path, errors: &mut ErrorList) {
    if value.split('/').any(|part| part == "..") {
        errors.push(FieldError::invalid(path, value, "must not contain '..'"));
    }
}

/// Validates a relative path without `..`.
pub(crate) fn local_path(value: &str, path: &Path, errors: &mut ErrorList) {
    if value.starts_with('/') {
        errors.push(FieldError::invalid(path, value, "must be a relative path"));
    }
    no_backsteps(value, path, errors);
}

/// Validates a [`local_path`] that does not start with `..`, which is reserved for the kubelet.
pub(crate) fn local_file(value: &str, path: &Path, errors: &mut ErrorList) {
    local_path(value, path, errors);
    if value.starts_with("..") && !value.starts_with("../") {
        errors.push(FieldError::invalid(path, value, "must not start with '..'"));
    }
}

/// An error about the whole object, without a field.
pub(crate) fn forbidden_object(detail: &str) -> FieldError {
    FieldError { field: String::new(), ..FieldError::forbidden(&Path::root(), detail) }
}
