//! The row of a Service, and load balancer addresses, which Ingresses have too.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::table::row::{NONE, Row, UNKNOWN, joined, joined_list, non_empty};
use kubewright_apimachinery::object::Fields as _;

pub(super) fn cells(row: &Row<'_>) -> Vec<Value> {
    let cluster_ip = row.list("spec.clusterIPs").first().and_then(Value::as_str);
    let ports: Vec<String> = row.list("spec.ports").iter().map(service_port).collect();
    vec![
        row.name(),
        row.text("spec.type"),
        cluster_ip.unwrap_or(NONE).into(),
        external_ip(row).into(),
        non_empty(&ports.join(","), NONE).into(),
        row.age(),
        row.labels("spec.selector"),
    ]
}

fn service_port(port: &Value) -> String {
    let number = port.int_at("port").unwrap_or_default();
    let protocol = port.str_at("protocol");
    match port.int_at("nodePort") {
        Some(node_port) if node_port > 0 => format!("{number}:{node_port}/{protocol}"),
        _ => format!("{number}/{protocol}"),
    }
}

fn external_ip(row: &Row<'_>) -> String {
    let external = joined_list(row.list("spec.externalIPs"), ",");
    match row.str("spec.type") {
        "ClusterIP" | "NodePort" => non_empty(&external, NONE).to_owned(),
        "LoadBalancer" => match (load_balancer(row), external) {
            (balancer, external) if balancer.is_empty() => non_empty(&external, "<pending>").to_owned(),
            (balancer, external) if external.is_empty() => balancer,
            (balancer, external) => format!("{balancer},{external}"),
        },
        "ExternalName" => row.str("spec.externalName").to_owned(),
        _ => UNKNOWN.to_owned(),
    }
}

/// The unique addresses of the load balancer.
pub(crate) fn load_balancer(row: &Row<'_>) -> String {
    let ingress = row.list("status.loadBalancer.ingress").iter();
    let places: BTreeSet<&str> = ingress.map(|i| non_empty(i.str_at("ip"), i.str_at("hostname"))).collect();
    joined(places.into_iter().filter(|place| !place.is_empty()), ",")
}
