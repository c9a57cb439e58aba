//! Validation of EndpointSlice.

use std::collections::HashSet;

use serde_json::Value;

use crate::validation::network::{app_protocol, endpoint_ip, protocol};
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::meta::{self, invalid};
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

const MAX_ENDPOINTS: usize = 1000;

const MAX_ADDRESSES: usize = 100;

const MAX_PORTS: usize = 20_000;

const MAX_HINTS: usize = 8;

pub(super) fn slice(object: &Value) -> ErrorList {
    let kind = object.str_at("addressType");
    let mut errors = ErrorList::new();
    let path = Path::new("addressType");
    match kind {
        "" => errors.push(FieldError::required(&path, "")),
        "FQDN" | "IPv4" | "IPv6" => {}
        other => errors.push(FieldError::not_supported(&path, other, &["FQDN", "IPv4", "IPv6"])),
    }
    errors.extend(slice_ports(object.list_at("ports")));

    let (endpoints, path) = (object.list_at("endpoints"), Path::new("endpoints"));
    if endpoints.len() > MAX_ENDPOINTS {
        errors.push(FieldError::too_many(&path, endpoints.len(), MAX_ENDPOINTS));
        return errors;
    }
    for (index, endpoint) in endpoints.iter().enumerate() {
        errors.extend(slice_endpoint(endpoint, kind, &path.index(index)));
    }
    errors
}

pub(super) fn slice_update(new: &Value, old: &Value) -> ErrorList {
    let mut errors = slice(new);
    errors.extend(meta::immutable(new.at("addressType"), old.at("addressType"), &Path::new("addressType")));
    errors
}

fn slice_ports(ports: &[Value]) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = Path::new("ports");
    if ports.len() > MAX_PORTS {
        return vec![FieldError::too_many(&path, ports.len(), MAX_PORTS)];
    }
    let mut seen = HashSet::new();
    for (index, port) in ports.iter().enumerate() {
        let path = path.index(index);
        let (name, name_path) = (port.str_at("name"), path.child("name"));
        if !name.is_empty() {
            errors.extend(invalid(&name_path, name, names::dns1123_label(name)));
        }
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(&name_path, name));
        }
        errors.extend(protocol(port, &path));
        errors.extend(app_protocol(port, &path));
    }
    errors
}

fn slice_endpoint(endpoint: &Value, kind: &str, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let (addresses, addresses_path) = (endpoint.list_at("addresses"), path.child("addresses"));
    if addresses.is_empty() {
        errors.push(FieldError::required(&addresses_path, "must contain at least 1 address"));
    } else if addresses.len() > MAX_ADDRESSES {
        errors.push(FieldError::too_many(&addresses_path, addresses.len(), MAX_ADDRESSES));
    }
    for (index, address) in addresses.iter().enumerate() {
        errors.extend(slice_address(address.as_str().unwrap_or_default(), kind, &addresses_path, index));
    }
    if let Some(node) = endpoint.at("nodeName").as_str() {
        errors.extend(invalid(&path.child("nodeName"), node, names::dns1123_subdomain(node)));
    }
    if let Some(host) = endpoint.at("hostname").as_str() {
        errors.extend(invalid(&path.child("hostname"), host, names::dns1123_label(host)));
    }
    let hints = path.child("hints");
    let zones = endpoint.list_at("hints.forZones");
    errors.extend(named_hints(zones, names::label_value, &hints.child("forZones")));
    if zones.len() <= MAX_HINTS {
        let nodes = endpoint.list_at("hints.forNodes");
        errors.extend(named_hints(nodes, names::dns1123_subdomain, &hints.child("forNodes")));
    }
    errors
}

fn slice_address(address: &str, kind: &str, list: &Path, index: usize) -> ErrorList {
    let path = list.index(index);
    let is_ipv4 = || names::parse_ip_sloppy(address).is_some_and(|ip| ip.to_canonical().is_ipv4());
    // EndpointSlices have always required canonical IPv6 addresses.
    let (messages, family_fits) = match kind {
        "IPv4" => (names::legacy_ip(address, true), is_ipv4()),
        "IPv6" => (names::ip(address), !is_ipv4()),
        "FQDN" if address.is_empty() => return vec![FieldError::required(&path, "")],
        "FQDN" => {
            let parts = names::fully_qualified_domain_name(address).into_iter();
            return parts.map(|(part, message)| FieldError::invalid(&path, part, message)).collect();
        }
        _ => return ErrorList::new(),
    };
    if !messages.is_empty() {
        return invalid(&path, address, messages).collect();
    }
    let mut errors = ErrorList::new();
    if !family_fits {
        // Upstream reports the whole list.
        errors.push(FieldError::invalid(list, address, format!("must be an {kind} address")));
    }
    errors.extend(endpoint_ip(address, &path));
    errors
}

fn named_hints(hints: &[Value], rule: fn(&str) -> Vec<String>, path: &Path) -> ErrorList {
    if hints.len() > MAX_HINTS {
        return vec![FieldError::too_many(path, hints.len(), MAX_HINTS)];
    }
    let mut errors = ErrorList::new();
    for (index, hint) in hints.iter().enumerate() {
        let (name, path) = (hint.str_at("name"), path.index(index).child("name"));
        if hints[..index].iter().any(|other| other.str_at("name") == name) {
            errors.push(FieldError::duplicate(&path, name));
        }
        errors.extend(invalid(&path, name, rule(name)));
    }
    errors
}
