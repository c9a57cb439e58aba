//! Resolves the endpoints of a webhook's Service.
//!
//! Ready endpoints come from the Service's EndpointSlices, else from its Endpoints, else from the ready Pods
//! that it selects: without controllers only Pods exist. Loopback addresses come first.

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
    let mut found = in_slices(lister, namespace, name, service_port);
    if found.is_empty() {
        found = in_endpoints(lister, namespace, name, service_port);
    }
    if found.is_empty() {
        found = in_pods(lister, namespace, &service, service_port);
    }
    if found.is_empty() {
        return Err(format!("no endpoints available for service {}", quote(name)));
    }
    found.sort_by_key(|address| !address.ip().is_loopback());
    Ok(found)
}

fn address(ip: &Value, port: Option<i64>) -> Option<SocketAddr> {
    let ip: IpAddr = ip.as_str()?.parse().ok()?;
    Some(SocketAddr::new(ip, u16::try_from(port?).ok()?))
}

/// The number of the port that has the same name as the Service's.
fn numbered(ports: &[Value], service_port: &Value) -> Option<i64> {
    let same = |port: &&Value| port.str_at("name") == service_port.str_at("name");
    ports.iter().find(same)?.int_at("port")
}

fn in_slices(lister: &Lister, namespace: &str, name: &str, service_port: &Value) -> Vec<SocketAddr> {
    let mut found = Vec::new();
    for slice in lister.list("discovery.k8s.io/endpointslices", namespace) {
        if slice.at("metadata.labels").get("kubernetes.io/service-name").and_then(Value::as_str) != Some(name)
        {
            continue;
        }
        let port = numbered(slice.list_at("ports"), service_port);
        let ready = |endpoint: &&Value| endpoint.at("conditions.ready").as_bool() != Some(false);
        for endpoint in slice.list_at("endpoints").iter().filter(ready) {
            found.extend(endpoint.list_at("addresses").iter().filter_map(|ip| address(ip, port)));
        }
    }
    found
}

fn in_endpoints(lister: &Lister, namespace: &str, name: &str, service_port: &Value) -> Vec<SocketAddr> {
    let Some(endpoints) = lister.get("endpoints", namespace, name) else { return Vec::new() };
    let mut found = Vec::new();
    for subset in endpoints.list_at("subsets") {
        let port = numbered(subset.list_at("ports"), service_port);
        found.extend(subset.list_at("addresses").iter().filter_map(|ip| address(ip.at("ip"), port)));
    }
    found
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
        found.extend(address(pod.at("status.podIP"), target).filter(|address| address.ip().is_loopback()));
    }
    found
}

fn named_port(pod: &Value, name: &str) -> Option<i64> {
    let containers = pod.list_at("spec.containers").iter();
    let mut ports = containers.flat_map(|container| container.list_at("ports"));
    ports.find(|port| port.str_at("name") == name)?.int_at("containerPort")
}
