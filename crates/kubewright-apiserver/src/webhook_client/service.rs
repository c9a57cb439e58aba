//! Resolves the endpoints of a webhook's Service: the ready Pods that it selects and that have a loopback
//! address.
//!
//! Other addresses are never called. They belong to simulated Pods, but the machine's network may route them.
//! EndpointSlices and Endpoints are not read, because they cannot contain loopback addresses.

use std::net::{IpAddr, SocketAddr};

use kubewright_apimachinery::field::quote;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::selector::LabelSelector;
use serde_json::Value;

use crate::registry::lister::Lister;

/// The addresses of a Service's port.
pub(super) fn endpoints(
    lister: &Lister,
    namespace: &str,
    name: &str,
    port: u16,
) -> Result<Vec<SocketAddr>, String> {
    let Some(service) = lister.get("services", namespace, name) else {
        return Err(format!("service {} not found", quote(name)));
    };
    if service.str_at("spec.type") == "ExternalName" {
        return Err(format!("unsupported service type {}", quote("ExternalName")));
    }
    let ports = service.list_at("spec.ports");
    let Some(service_port) = ports.iter().find(|known| known.int_at("port") == Some(i64::from(port))) else {
        return Err(format!("no service port {port} found for service {}", quote(name)));
    };
    let found = in_pods(lister, namespace, &service, service_port);
    if found.is_empty() {
        return Err(format!("no endpoints available for service {}", quote(name)));
    }
    Ok(found)
}

fn in_pods(lister: &Lister, namespace: &str, service: &Value, service_port: &Value) -> Vec<SocketAddr> {
    let selector = service.map_at("spec.selector");
    if selector.is_empty() {
        return Vec::new();
    }
    let labels = selector.iter().map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()));
    let selector = LabelSelector::from_labels(labels);
    let mut found = Vec::new();
    for pod in lister.list("pods", namespace) {
        let ready = pod
            .list_at("status.conditions")
            .iter()
            .any(|condition| condition.str_at("type") == "Ready" && condition.str_at("status") == "True");
        if !ready || !selector.matches(pod.at("metadata.labels")) {
            continue;
        }
        let target = match service_port.at("targetPort") {
            Value::String(name) => named_port(&pod, name),
            Value::Number(number) => number.as_i64(),
            _ => service_port.int_at("port"),
        };
        let ip = pod.str_at("status.podIP").parse::<IpAddr>().ok().filter(IpAddr::is_loopback);
        let port = target.and_then(|port| u16::try_from(port).ok());
        found.extend(ip.zip(port).map(SocketAddr::from));
    }
    found
}

fn named_port(pod: &Value, name: &str) -> Option<i64> {
    let containers = pod.list_at("spec.containers").iter();
    let mut ports = containers.flat_map(|container| container.list_at("ports"));
    ports.find(|port| port.str_at("name") == name)?.int_at("containerPort")
}
