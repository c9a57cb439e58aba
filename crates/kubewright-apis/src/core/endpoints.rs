//! Endpoints.

use serde_json::Value;

use crate::kinds::KindRules;
use crate::registry::RegistryRules;
use crate::table::row::{NONE, Row, SHOWN, first};
use crate::validation::network::{app_protocol, endpoint_ip, port_number, protocol};
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::meta::{Check, invalid};
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

pub(crate) const RULES: KindRules = KindRules {
    kind: "Endpoints",
    defaults,
    warnings: |new, _| warnings(new),
    update_checks: &[Check::Update, Check::New],
    validate,
    validate_update: |new, _| validate(new),
    cells,
    registry: RegistryRules {
        creates_on_update: true,
        deprecation: Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"),
        etcd_name: Some("services/endpoints"),
        ..RegistryRules::DEFAULT
    },
    ..super::GROUP
};

fn defaults(object: &mut Value) {
    for subset in object.list_mut("subsets").into_iter().flatten() {
        for port in subset.list_mut("ports").into_iter().flatten() {
            port.default_at("protocol", "TCP");
        }
    }
}

fn warnings(object: &Value) -> Vec<String> {
    // Upstream skips objects of controllers, which only copy addresses.
    if is_managed_by(object, "endpoints.kubernetes.io/managed-by", &["endpoint-controller"]) {
        return Vec::new();
    }
    let mut warnings = Vec::new();
    for (index, subset) in object.list_at("subsets").iter().enumerate() {
        let path = Path::new("subsets").index(index);
        for list in ["addresses", "notReadyAddresses"] {
            for (index, address) in subset.list_at(list).iter().enumerate() {
                let path = path.child(list).index(index).child("ip");
                warnings.extend(names::ip_warnings(path.as_str(), address.str_at("ip")));
            }
        }
    }
    warnings
}

/// Whether a label names one of these controllers as the manager of an object.
pub(crate) fn is_managed_by(object: &Value, label: &str, controllers: &[&str]) -> bool {
    let manager = object.map_at("metadata.labels").get(label).and_then(Value::as_str);
    manager.is_some_and(|manager| controllers.contains(&manager))
}

fn validate(object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    for (index, subset) in object.list_at("subsets").iter().enumerate() {
        let path = Path::new("subsets").index(index);
        let (ready, not_ready) = (subset.list_at("addresses"), subset.list_at("notReadyAddresses"));
        if ready.is_empty() && not_ready.is_empty() {
            errors.push(FieldError::required(&path, "must specify `addresses` or `notReadyAddresses`"));
        }
        for (list, addresses) in [("addresses", ready), ("notReadyAddresses", not_ready)] {
            for (index, address) in addresses.iter().enumerate() {
                errors.extend(subset_address(address, &path.child(list).index(index)));
            }
        }
        let ports = subset.list_at("ports");
        for (index, port) in ports.iter().enumerate() {
            errors.extend(subset_port(port, ports.len() > 1, &path.child("ports").index(index)));
        }
    }
    errors
}

fn subset_address(address: &Value, path: &Path) -> ErrorList {
    let (ip, ip_path) = (address.str_at("ip"), path.child("ip"));
    let mut errors: ErrorList = invalid(&ip_path, ip, names::legacy_ip(ip, true)).collect();
    let host = address.str_at("hostname");
    if !host.is_empty() {
        errors.extend(invalid(&path.child("hostname"), host, names::dns1123_label(host)));
    }
    if let Some(node) = address.at("nodeName").as_str() {
        errors.extend(invalid(&path.child("nodeName"), node, names::dns1123_subdomain(node)));
    }
    errors.extend(endpoint_ip(ip, &ip_path));
    errors
}

fn subset_port(port: &Value, name_required: bool, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let (name, name_path) = (port.str_at("name"), path.child("name"));
    if !name.is_empty() {
        errors.extend(invalid(&name_path, name, names::dns1123_label(name)));
    } else if name_required {
        errors.push(FieldError::required(&name_path, ""));
    }
    errors.extend(port_number(port.int_at("port").unwrap_or_default(), &path.child("port")));
    errors.extend(protocol(port, path));
    errors.extend(app_protocol(port, path));
    errors
}

fn cells(row: &Row<'_>) -> Vec<Value> {
    let subsets = row.list("subsets");
    let shown = if subsets.is_empty() {
        NONE.to_owned()
    } else {
        first(&subsets.iter().flat_map(subset).collect::<Vec<_>>(), SHOWN, ",")
    };
    vec![row.name(), shown.into(), row.age()]
}

/// All combinations of address and port.
fn subset(subset: &Value) -> Vec<String> {
    let addresses = || subset.list_at("addresses").iter().map(|address| address.str_at("ip"));
    let ports = subset.list_at("ports");
    if ports.is_empty() {
        return addresses().map(str::to_owned).collect();
    }
    let with_port = |port: &Value| {
        let port = port.int_at("port").unwrap_or_default();
        addresses()
            .map(move |ip| if ip.contains(':') { format!("[{ip}]:{port}") } else { format!("{ip}:{port}") })
    };
    ports.iter().flat_map(with_port).collect()
}

#[cfg(test)]
mod tests;
