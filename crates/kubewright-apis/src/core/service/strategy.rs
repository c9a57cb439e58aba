//! Strategy of Service.
//!
//! Many fields depend on each other: `clusterIPs` on `clusterIP`, and much of the spec on `type`. A client
//! that replaces a service without reading it omits allocated values, and one that changes the type keeps
//! fields of the old type. Both are corrected here. Explicit changes are left for validation.

use serde_json::{Value, json};

use crate::strategy::keep;
use kubewright_apimachinery::object::Fields as _;

/// Whether the service accepts traffic from outside of the cluster.
pub(crate) fn externally_accessible(service: &Value) -> bool {
    match service.str_at("spec.type") {
        "LoadBalancer" | "NodePort" => true,
        "ClusterIP" => !service.list_at("spec.externalIPs").is_empty(),
        _ => false,
    }
}

/// Whether load balancers check the nodes for pods of the service.
pub(crate) fn needs_health_check(service: &Value) -> bool {
    service.str_at("spec.type") == "LoadBalancer" && service.str_at("spec.externalTrafficPolicy") == "Local"
}

pub(super) fn prepare_create(service: &mut Value) {
    align_cluster_ips(service, None);
    service.set_at("status", json!({"loadBalancer": {}}));
}

pub(super) fn prepare_update(new: &mut Value, old: &Value) {
    keep_allocated(new, old);
    align_cluster_ips(new, Some(old));
    keep(new, old, "status");
    drop_type_dependent(new, old);
}

/// Restores allocated values that the new object omits.
fn keep_allocated(new: &mut Value, old: &Value) {
    if needs_cluster_ip(new) && needs_cluster_ip(old) {
        for field in ["spec.clusterIP", "spec.clusterIPs"] {
            if is_empty(new.at(field)) {
                keep(new, old, field);
            }
        }
    }
    if needs_node_ports(new) && needs_node_ports(old) {
        keep_node_ports(new, old);
    }
    if needs_health_check(new)
        && needs_health_check(old)
        && node_port(new.at("spec.healthCheckNodePort")) == 0
    {
        keep(new, old, "spec.healthCheckNodePort");
    }
}

/// Restores node ports of ports with the same name, unless another port uses them.
fn keep_node_ports(new: &mut Value, old: &Value) {
    let named: Vec<i64> = node_ports(new).collect();
    let old_ports = old.list_at("spec.ports");
    for port in new.list_mut("spec.ports").into_iter().flatten() {
        if node_port(port.at("nodePort")) != 0 {
            continue;
        }
        let same_name = |other: &&Value| other.str_at("name") == port.str_at("name");
        let kept = old_ports.iter().rfind(same_name).map_or(0, |other| node_port(other.at("nodePort")));
        if kept != 0 && !named.contains(&kept) {
            port.set_at("nodePort", kept);
        }
    }
}

/// Synchronizes `clusterIPs` with `clusterIP`, for clients that only know the latter.
fn align_cluster_ips(new: &mut Value, old: Option<&Value>) {
    let ip = new.str_at("spec.clusterIP").to_owned();
    let Some(old) = old else {
        if !ip.is_empty() && new.list_at("spec.clusterIPs").is_empty() {
            new.set_at("spec.clusterIPs", json!([ip]));
        }
        return;
    };
    if ip == old.str_at("spec.clusterIP") {
        if new.list_at("spec.clusterIPs").is_empty() {
            keep(new, old, "spec.clusterIPs");
        }
    } else if new.list_at("spec.clusterIPs") == old.list_at("spec.clusterIPs") {
        if ip.is_empty() {
            new.remove_at("spec.clusterIPs");
        } else {
            new.set_at("spec.clusterIPs", json!([ip]));
        }
    }
}

/// Removes unchanged fields that the old type needs and the new one does not have.
fn drop_type_dependent(new: &mut Value, old: &Value) {
    if needs_cluster_ip(old) && !needs_cluster_ip(new) {
        if same(new, old, "spec.clusterIP") && same(new, old, "spec.clusterIPs") {
            new.remove_at("spec.clusterIP");
            new.remove_at("spec.clusterIPs");
        }
        for field in ["spec.ipFamilies", "spec.ipFamilyPolicy"] {
            if same(new, old, field) {
                new.remove_at(field);
            }
        }
    }
    if needs_node_ports(old) && !needs_node_ports(new) && no_new_node_ports(new, old) {
        for port in new.list_mut("spec.ports").into_iter().flatten() {
            port.remove_at("nodePort");
        }
    }
    if needs_health_check(old) && !needs_health_check(new) && same(new, old, "spec.healthCheckNodePort") {
        new.remove_at("spec.healthCheckNodePort");
    }
    let balanced = |service: &Value| service.str_at("spec.type") == "LoadBalancer";
    if balanced(old) && !balanced(new) {
        for field in ["spec.allocateLoadBalancerNodePorts", "spec.loadBalancerClass"] {
            if same(new, old, field) {
                new.remove_at(field);
            }
        }
    }
    if externally_accessible(old)
        && !externally_accessible(new)
        && same(new, old, "spec.externalTrafficPolicy")
    {
        new.remove_at("spec.externalTrafficPolicy");
    }
    if !balanced(new) {
        new.set_at("status.loadBalancer", json!({}));
    }
}

fn needs_cluster_ip(service: &Value) -> bool {
    service.str_at("spec.type") != "ExternalName"
}

fn needs_node_ports(service: &Value) -> bool {
    matches!(service.str_at("spec.type"), "NodePort" | "LoadBalancer")
}

fn no_new_node_ports(new: &Value, old: &Value) -> bool {
    let before: Vec<i64> = node_ports(old).collect();
    node_ports(new).all(|port| before.contains(&port))
}

fn node_ports(service: &Value) -> impl Iterator<Item = i64> {
    service.list_at("spec.ports").iter().map(|port| node_port(port.at("nodePort"))).filter(|port| *port != 0)
}

fn node_port(value: &Value) -> i64 {
    value.as_i64().unwrap_or_default()
}

fn same(new: &Value, old: &Value, path: &str) -> bool {
    new.at(path) == old.at(path)
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value == "" || value.as_array().is_some_and(Vec::is_empty)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(spec: Value) -> Value {
        let mut service = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "status": {"loadBalancer": {}},
        });
        service.set_at("spec", spec);
        service
    }

    fn spec_after(new: Value, old: Value) -> Value {
        let mut new = stored(new);
        prepare_update(&mut new, &stored(old));
        new.remove_at("spec").unwrap_or_default()
    }

    #[test]
    fn an_update_without_allocated_values_keeps_them() {
        let old = json!({
            "type": "NodePort", "clusterIP": "10.0.0.7", "clusterIPs": ["10.0.0.7"],
            "ports": [{"name": "a", "port": 80, "nodePort": 30001}, {"name": "b", "port": 81, "nodePort": 30002}],
        });
        let new =
            json!({"type": "LoadBalancer", "ports": [{"name": "b", "port": 81}, {"name": "c", "port": 82}]});
        assert_eq!(
            spec_after(new, old),
            json!({
                "type": "LoadBalancer", "clusterIP": "10.0.0.7", "clusterIPs": ["10.0.0.7"],
                "ports": [{"name": "b", "port": 81, "nodePort": 30002}, {"name": "c", "port": 82}],
            })
        );
    }

    #[test]
    fn a_node_port_that_moved_to_another_port_is_not_kept() {
        let old = json!({"type": "NodePort", "ports": [{"name": "a", "port": 80, "nodePort": 30001}]});
        let new = json!({"type": "NodePort", "ports": [{"name": "a", "port": 80}, {"name": "b", "port": 81, "nodePort": 30001}]});
        assert_eq!(spec_after(new.clone(), old), new);
    }

    #[test]
    fn changing_to_cluster_ip_removes_load_balancer_fields() {
        let balanced = json!({
            "type": "LoadBalancer", "allocateLoadBalancerNodePorts": true, "externalTrafficPolicy": "Local",
            "healthCheckNodePort": 30009, "loadBalancerClass": "x/y", "clusterIP": "10.0.0.7", "clusterIPs": ["10.0.0.7"],
            "ports": [{"port": 80, "nodePort": 30001}],
        });
        let mut new = balanced.clone();
        new.set_at("type", "ClusterIP");
        assert_eq!(
            spec_after(new, balanced.clone()),
            json!({"type": "ClusterIP", "clusterIP": "10.0.0.7", "clusterIPs": ["10.0.0.7"], "ports": [{"port": 80}]})
        );
        let mut new = balanced.clone();
        new.set_at("type", "ClusterIP");
        new.set_at("loadBalancerClass", "x/z");
        assert_eq!(spec_after(new, balanced).str_at("loadBalancerClass"), "x/z");
    }

    #[test]
    fn changing_to_external_name_releases_cluster_ips() {
        let old = json!({
            "type": "ClusterIP", "clusterIP": "10.0.0.7", "clusterIPs": ["10.0.0.7"],
            "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack", "ports": [{"port": 80}],
        });
        let mut new = old.clone();
        new.set_at("type", "ExternalName");
        new.set_at("externalName", "example.com");
        assert_eq!(
            spec_after(new, old),
            json!({"type": "ExternalName", "externalName": "example.com", "ports": [{"port": 80}]})
        );
    }

    #[test]
    fn cluster_ips_are_synchronized_with_cluster_ip() {
        let mut service = stored(json!({"clusterIP": "None"}));
        prepare_create(&mut service);
        assert_eq!(service.at("spec.clusterIPs"), &json!(["None"]));

        let old = json!({"type": "ClusterIP", "clusterIP": "10.0.0.7", "clusterIPs": ["10.0.0.7"]});
        let new = json!({"type": "ClusterIP", "clusterIP": "10.0.0.8", "clusterIPs": ["10.0.0.7"]});
        assert_eq!(spec_after(new, old).at("clusterIPs"), &json!(["10.0.0.8"]));
    }

    #[test]
    fn only_load_balancers_have_ingress_addresses_in_status() {
        let mut old = stored(json!({"type": "LoadBalancer"}));
        old.set_at("status.loadBalancer.ingress", json!([{"ip": "192.0.2.1"}]));
        let mut new = stored(json!({"type": "LoadBalancer"}));
        prepare_update(&mut new, &old);
        assert_eq!(new.at("status"), old.at("status"));
        let mut new = stored(json!({"type": "NodePort"}));
        prepare_update(&mut new, &old);
        assert_eq!(new.at("status"), &json!({"loadBalancer": {}}));
    }
}
