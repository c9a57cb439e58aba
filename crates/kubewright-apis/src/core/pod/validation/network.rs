//! Validation of DNS, host names and host namespaces of a pod.

use serde_json::Value;

use super::checks;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

const MAX_NAMESERVERS: usize = 3;
const MAX_SEARCHES: usize = 32;
const MAX_SEARCH_LENGTH: usize = 2048;

/// In the host network, container ports must equal host ports. In a template the host port may be unset.
pub(super) fn host_network(spec: &Value, in_template: bool, path: &Path, errors: &mut ErrorList) {
    if !spec.bool_at("hostNetwork") {
        return;
    }
    for (container, path) in checks::items(spec, "containers", path) {
        for (port, path) in checks::items(container, "ports", &path) {
            let of_host = port.int_at("hostPort").unwrap_or_default();
            let of_container = port.int_at("containerPort").unwrap_or_default();
            if of_host != of_container && (of_host != 0 || !in_template) {
                let detail = "must match `containerPort` when `hostNetwork` is true";
                errors.push(FieldError::invalid(&path.child("hostPort"), of_host, detail));
            }
        }
    }
}

/// Validates `dnsPolicy` and `dnsConfig`.
pub(super) fn dns_config(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let (config, path) = (spec.at("dnsConfig"), path.child("dnsConfig"));
    if spec.str_at("dnsPolicy") == "None" {
        if config.is_null() {
            errors.push(FieldError::required(&path, "must provide `dnsConfig` when `dnsPolicy` is None"));
            return;
        }
        if config.list_at("nameservers").is_empty() {
            let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            errors.push(FieldError::required(&path.child("nameservers"), detail));
            return;
        }
    }
    let nameservers = config.list_at("nameservers");
    if nameservers.len() > MAX_NAMESERVERS {
        let detail = format!("must not have more than {MAX_NAMESERVERS} nameservers");
        errors.push(FieldError::invalid(&path.child("nameservers"), nameservers.to_vec(), detail));
    }
    for (index, server) in checks::strings(config, "nameservers").enumerate() {
        checks::legacy_ip(server, &[], &path.child("nameservers").index(index), errors);
    }
    let searches: Vec<&str> = checks::strings(config, "searches").collect();
    let searches_path = path.child("searches");
    if searches.len() > MAX_SEARCHES {
        let detail = format!("must not have more than {MAX_SEARCHES} search paths");
        errors.push(FieldError::invalid(&searches_path, searches.clone(), detail));
    }
    if searches.join(" ").len() > MAX_SEARCH_LENGTH {
        let detail = format!(
            "must not have more than {MAX_SEARCH_LENGTH} characters (including spaces) in the search list"
        );
        errors.push(FieldError::invalid(&searches_path, searches.clone(), detail));
    }
    for (index, search) in searches.into_iter().enumerate() {
        if search != "." {
            let search = search.strip_suffix('.').unwrap_or(search);
            let messages = names::dns1123_subdomain_with_underscore(search);
            checks::named(search, messages, &searches_path.index(index), errors);
        }
    }
    for (option, path) in checks::items(config, "options", &path) {
        if option.str_at("name").is_empty() {
            errors.push(FieldError::required(&path, "must not be empty"));
        }
    }
}

/// Validates `hostAliases`.
pub(super) fn host_aliases(spec: &Value, path: &Path, errors: &mut ErrorList) {
    for (alias, path) in checks::items(spec, "hostAliases", path) {
        checks::legacy_ip(alias.str_at("ip"), &[], &path.child("ip"), errors);
        for (index, name) in checks::strings(alias, "hostnames").enumerate() {
            checks::dns_subdomain(name, &path.child("hostnames").index(index), errors);
        }
    }
}

/// A pod with its own user namespace cannot use other host namespaces or raw devices.
pub(super) fn host_users(spec: &Value, path: &Path, errors: &mut ErrorList) {
    if spec.at("hostUsers") != &Value::Bool(false) {
        return;
    }
    let detail = "when `hostUsers` is false";
    for (name, printed) in [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")] {
        if spec.bool_at(name) {
            errors.push(FieldError::forbidden(&path.child(printed), detail));
        }
    }
    for (container, path) in checks::containers(spec, path) {
        if !container.list_at("volumeDevices").is_empty() {
            errors.push(FieldError::forbidden(&path.child("volumeDevices"), detail));
        }
    }
}

/// Validates `hostnameOverride`.
pub(super) fn hostname_override(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let Some(name) = spec.at("hostnameOverride").as_str() else { return };
    let path = path.child("hostnameOverride");
    for field in ["setHostnameAsFQDN", "hostNetwork"] {
        if spec.bool_at(field) {
            errors.push(FieldError::forbidden(&path, format!("may not be specified when {field} is true")));
        }
    }
    if name.len() > 64 {
        errors.push(FieldError::too_long(&path, 64));
    }
    checks::dns_subdomain(name, &path, errors);
}
