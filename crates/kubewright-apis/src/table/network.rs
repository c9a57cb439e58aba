//! Rows of Services, endpoints, Ingresses and related kinds.

use std::collections::BTreeSet;

use serde_json::Value;

use super::row::{NONE, Row, UNKNOWN, UNSET, first, joined_list, non_empty};
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::status::Qualified;

/// Maximum number of list items in a cell.
const SHOWN: usize = 3;

pub(super) fn service(row: &Row<'_>) -> Vec<Value> {
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
fn load_balancer(row: &Row<'_>) -> String {
    let ingress = row.list("status.loadBalancer.ingress").iter();
    let places: BTreeSet<&str> = ingress.map(|i| non_empty(i.str_at("ip"), i.str_at("hostname"))).collect();
    super::row::joined(places.into_iter().filter(|place| !place.is_empty()), ",")
}

pub(super) fn endpoints(row: &Row<'_>) -> Vec<Value> {
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

pub(super) fn endpoint_slice(row: &Row<'_>) -> Vec<Value> {
    let port = |port: &Value| match port.int_at("port") {
        Some(number) => number.to_string(),
        None => port.at("name").as_str().unwrap_or("*").to_owned(),
    };
    let ports: Vec<String> = row.list("ports").iter().map(port).collect();
    let addresses = row.list("endpoints").iter().flat_map(|endpoint| endpoint.list_at("addresses"));
    let addresses: Vec<String> = addresses.filter_map(Value::as_str).map(str::to_owned).collect();
    vec![
        row.name(),
        row.text("addressType"),
        non_empty(&first(&ports, SHOWN, ","), UNSET).into(),
        non_empty(&first(&addresses, SHOWN, ","), UNSET).into(),
        row.age(),
    ]
}

pub(super) fn ingress(row: &Row<'_>) -> Vec<Value> {
    let ports = if row.list("spec.tls").is_empty() { "80" } else { "80, 443" };
    vec![
        row.name(),
        row.optional("spec.ingressClassName", NONE),
        hosts(row.list("spec.rules")).into(),
        load_balancer(row).into(),
        ports.into(),
        row.age(),
    ]
}

/// The first hosts. Rules without a host count as omitted.
fn hosts(rules: &[Value]) -> String {
    let named: Vec<(usize, &str)> = rules
        .iter()
        .map(|rule| rule.str_at("host"))
        .enumerate()
        .filter(|(_, host)| !host.is_empty())
        .collect();
    let shown = super::row::joined(named.iter().take(SHOWN).map(|(_, host)| *host), ",");
    match named.get(SHOWN - 1) {
        _ if named.is_empty() => "*".to_owned(),
        Some((last, _)) if last + 1 < rules.len() => format!("{shown} + {} more...", rules.len() - SHOWN),
        _ => shown,
    }
}

pub(super) fn ingress_class(row: &Row<'_>) -> Vec<Value> {
    let parameters = row.object.at("spec.parameters");
    let shown = if parameters.is_null() {
        NONE.to_owned()
    } else {
        let group = parameters.at("apiGroup").as_str().map(|group| format!(".{group}")).unwrap_or_default();
        format!("{}{group}/{}", parameters.str_at("kind"), parameters.str_at("name"))
    };
    vec![row.name(), row.text("spec.controller"), shown.into(), row.age()]
}

pub(super) fn network_policy(row: &Row<'_>) -> Vec<Value> {
    vec![row.name(), row.selector("spec.podSelector"), row.age()]
}

pub(super) fn service_cidr(row: &Row<'_>) -> Vec<Value> {
    vec![row.name(), joined_list(row.list("spec.cidrs"), ",").into(), row.age()]
}

/// Like upstream, has one cell more than there are columns.
pub(super) fn ip_address(row: &Row<'_>) -> Vec<Value> {
    let parent = row.object.at("spec.parentRef");
    let shown = if parent.is_null() {
        NONE.to_owned()
    } else {
        let resource = Qualified { group: parent.str_at("group"), name: parent.str_at("resource") };
        let namespace = parent.str_at("namespace");
        let slash = if namespace.is_empty() { "" } else { "/" };
        format!("{}{slash}{namespace}/{}", resource.to_string().to_lowercase(), parent.str_at("name"))
    };
    vec![row.name(), shown.into(), row.age()]
}
