//! Validation of Ingress.

use serde_json::Value;

use crate::networking::{reference, required_name};
use crate::validation::network::{balancer_hostname, port_number};
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::meta::invalid;
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";

pub(super) fn create(ingress: &Value) -> ErrorList {
    let mut errors = spec(ingress);
    let annotation = ingress.map_at("metadata.annotations").get(CLASS_ANNOTATION);
    let class = ingress.at("spec.ingressClassName");
    if let Some(value) = annotation
        && !class.is_null()
        && value != class
    {
        let path = Path::new("annotations").child(CLASS_ANNOTATION);
        let detail = "must match `ingressClassName` when both are specified";
        errors.push(FieldError::invalid(&path, value.clone(), detail));
    }
    errors
}

pub(super) fn spec(ingress: &Value) -> ErrorList {
    let path = Path::new("spec");
    let rules = ingress.list_at("spec.rules");
    let default = ingress.at("spec.defaultBackend");
    let mut errors = ErrorList::new();
    if default.is_null() {
        if rules.is_empty() {
            let detail = "either `defaultBackend` or `rules` must be specified";
            errors.push(FieldError::invalid(&path, ingress.at("spec.rules").clone(), detail));
        }
    } else {
        errors.extend(backend(default, &path.child("defaultBackend")));
    }
    for (index, item) in rules.iter().enumerate() {
        errors.extend(rule(item, &path.child("rules").index(index)));
    }
    for (index, item) in ingress.list_at("spec.tls").iter().enumerate() {
        errors.extend(tls(item, &path.child("tls").index(index)));
    }
    if let Some(class) = ingress.at("spec.ingressClassName").as_str() {
        errors.extend(invalid(&path.child("ingressClassName"), class, names::dns1123_subdomain(class)));
    }
    errors
}

pub(super) fn status(ingress: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    for (index, ingress) in ingress.list_at("status.loadBalancer.ingress").iter().enumerate() {
        let path = Path::new("status").child("loadBalancer").child("ingress").index(index);
        let ip = ingress.str_at("ip");
        if !ip.is_empty() {
            errors.extend(invalid(&path.child("ip"), ip, names::legacy_ip(ip, true)));
        }
        errors.extend(balancer_hostname(ingress.str_at("hostname"), &path.child("hostname")));
    }
    errors
}

fn rule(rule: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let (name, host_path) = (rule.str_at("host"), path.child("host"));
    if !name.is_empty() {
        if names::parse_ip_sloppy(name).is_some() {
            errors.push(FieldError::invalid(&host_path, name, "must be a DNS name, not an IP address"));
        }
        errors.extend(host(name, &host_path));
    }
    let http = rule.at("http");
    if http.is_null() {
        return errors;
    }
    let paths_path = path.child("http").child("paths");
    let paths = http.list_at("paths");
    if paths.is_empty() {
        errors.push(FieldError::required(&paths_path, ""));
    }
    for (index, item) in paths.iter().enumerate() {
        errors.extend(http_path(item, &paths_path.index(index)));
    }
    errors
}

/// Validates a host, which may be a wildcard such as `*.example.com`.
fn host(name: &str, path: &Path) -> ErrorList {
    let rule = if name.contains('*') { names::wildcard_dns1123_subdomain } else { names::dns1123_subdomain };
    invalid(path, name, rule(name)).collect()
}

fn tls(tls: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (index, name) in tls.list_at("hosts").iter().enumerate() {
        errors.extend(host(name.as_str().unwrap_or_default(), &path.child("hosts").index(index)));
    }
    let secret = tls.str_at("secretName");
    if !secret.is_empty() {
        errors.extend(invalid(&path.child("secretName"), secret, names::dns1123_subdomain(secret)));
    }
    errors
}

fn http_path(item: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let (value, value_path) = (item.str_at("path"), path.child("path"));
    let wrong = |detail: String| FieldError::invalid(&value_path, value, detail);
    let absolute = value.starts_with('/');
    match item.at("pathType").as_str() {
        None => return vec![FieldError::required(&path.child("pathType"), "pathType must be specified")],
        Some("Exact" | "Prefix") => {
            if !absolute {
                errors.push(wrong("must be an absolute path".to_owned()));
            }
            let contained =
                ["//", "/./", "/../", "%2f", "%2F"].into_iter().filter(|part| value.contains(part));
            errors.extend(contained.map(|part| wrong(format!("must not contain '{part}'"))));
            let ends = ["/..", "/."].into_iter().filter(|end| value.ends_with(end));
            errors.extend(ends.map(|end| wrong(format!("cannot end with '{end}'"))));
        }
        Some("ImplementationSpecific") => {
            if !value.is_empty() && !absolute {
                errors.push(wrong("must be an absolute path".to_owned()));
            }
        }
        Some(other) => {
            let known = ["Exact", "ImplementationSpecific", "Prefix"];
            errors.push(FieldError::not_supported(&path.child("pathType"), other, &known));
        }
    }
    errors.extend(backend(item.at("backend"), &path.child("backend")));
    errors
}

fn backend(backend: &Value, path: &Path) -> ErrorList {
    let wrong = |detail: &str| FieldError::invalid(path, "", detail);
    match (backend.at("resource"), backend.at("service")) {
        (Value::Null, Value::Null) => vec![wrong("resource or service backend is required")],
        (Value::Null, service) => {
            let (name, name_path) = (service.str_at("name"), path.child("service").child("name"));
            let mut errors = required_name(name, &name_path, names::dns1123_label);
            let port = path.child("service").child("port");
            match (service.str_at("port.name"), service.int_at("port.number").unwrap_or_default()) {
                ("", 0) => errors.push(FieldError::required(path, "port name or number is required")),
                ("", number) => errors.extend(port_number(number, &port.child("number"))),
                (name, 0) => errors.extend(invalid(&port.child("name"), name, names::port_name(name))),
                _ => errors.push(wrong("cannot set both port name & port number")),
            }
            errors
        }
        (resource, Value::Null) => reference(resource, &path.child("resource")),
        _ => vec![wrong("cannot set both resource and service backends")],
    }
}
