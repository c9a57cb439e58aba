//! Defaults of Service, Endpoints, EndpointSlice, IngressClass and NetworkPolicy.
//!
//! Allocated values (cluster IPs, node ports) and IP families are not set here.

use serde_json::{Value, json};

use crate::strategy::service::externally_accessible;
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::object::Fields as _;

/// Default timeout of session affinity in seconds.
const AFFINITY_TIMEOUT: i64 = 10_800;

pub(super) fn apply(gvk: Gvk<'_>, object: &mut Value) {
    match gvk.kind {
        "Service" => service(object),
        "Endpoints" => endpoints(object),
        "EndpointSlice" => endpoint_slice(object),
        "IngressClass" => ingress_class(object),
        "NetworkPolicy" => network_policy(object),
        _ => {}
    }
}

fn service(object: &mut Value) {
    object.default_at("spec.sessionAffinity", "None");
    session_affinity_config(object);
    object.default_at("spec.type", "ClusterIP");
    for port in object.list_mut("spec.ports").into_iter().flatten() {
        port.default_at("protocol", "TCP");
        let target = port.at("targetPort");
        if target.is_null() || target == 0 || target == "" {
            let number = port.at("port").clone();
            port.set_at("targetPort", number);
        }
    }
    if externally_accessible(object) {
        object.default_at("spec.externalTrafficPolicy", "Cluster");
    }
    if matches!(object.str_at("spec.type"), "ClusterIP" | "NodePort" | "LoadBalancer") {
        object.default_at("spec.internalTrafficPolicy", "Cluster");
    }
    if object.str_at("spec.type") == "LoadBalancer" {
        object.default_at("spec.allocateLoadBalancerNodePorts", true);
        for ingress in object.list_mut("status.loadBalancer.ingress").into_iter().flatten() {
            if !ingress.str_at("ip").is_empty() {
                ingress.default_at("ipMode", "VIP");
            }
        }
    }
}

/// Sets or removes the configuration. Without session affinity it is removed.
fn session_affinity_config(object: &mut Value) {
    match object.str_at("spec.sessionAffinity") {
        "None" => {
            object.remove_at("spec.sessionAffinityConfig");
        }
        "ClientIP" if !object.has("spec.sessionAffinityConfig.clientIP.timeoutSeconds") => {
            let config = json!({"clientIP": {"timeoutSeconds": AFFINITY_TIMEOUT}});
            object.set_at("spec.sessionAffinityConfig", config);
        }
        _ => {}
    }
}

fn endpoints(object: &mut Value) {
    for subset in object.list_mut("subsets").into_iter().flatten() {
        for port in subset.list_mut("ports").into_iter().flatten() {
            port.default_at("protocol", "TCP");
        }
    }
}

fn endpoint_slice(object: &mut Value) {
    for port in object.list_mut("ports").into_iter().flatten() {
        port.default_at("name", "");
        port.default_at("protocol", "TCP");
    }
}

fn ingress_class(object: &mut Value) {
    if object.has("spec.parameters") {
        object.default_at("spec.parameters.scope", "Cluster");
    }
}

fn network_policy(object: &mut Value) {
    for direction in ["spec.ingress", "spec.egress"] {
        for rule in object.list_mut(direction).into_iter().flatten() {
            for port in rule.list_mut("ports").into_iter().flatten() {
                port.default_at("protocol", "TCP");
            }
        }
    }
    if object.list_at("spec.policyTypes").is_empty() {
        // Egress rules imply the policy type Egress. Ingress is always included.
        let both = !object.list_at("spec.egress").is_empty();
        object
            .set_at("spec.policyTypes", if both { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn defaulted(mut object: Value) -> Value {
        let copy = object.clone();
        apply(Gvk::of(&copy), &mut object);
        object
    }

    #[test]
    fn a_service_defaults_to_cluster_ip() {
        let service = defaulted(json!({
            "apiVersion": "v1", "kind": "Service",
            "spec": {"ports": [{"port": 80, "targetPort": 0}, {"port": 53, "protocol": "UDP", "targetPort": "dns"}]},
        }));
        assert_eq!(
            service.at("spec"),
            &json!({
                "internalTrafficPolicy": "Cluster", "sessionAffinity": "None", "type": "ClusterIP",
                "ports": [
                    {"port": 80, "protocol": "TCP", "targetPort": 80},
                    {"port": 53, "protocol": "UDP", "targetPort": "dns"},
                ],
            })
        );
    }

    #[test]
    fn a_load_balancer_gets_node_ports_and_an_ip_mode() {
        let service = defaulted(json!({
            "apiVersion": "v1", "kind": "Service",
            "spec": {"type": "LoadBalancer"},
            "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.7"}, {"hostname": "a.example.com"}]}},
        }));
        assert_eq!(
            service.at("spec"),
            &json!({
                "allocateLoadBalancerNodePorts": true, "externalTrafficPolicy": "Cluster",
                "internalTrafficPolicy": "Cluster", "sessionAffinity": "None", "type": "LoadBalancer",
            })
        );
        assert_eq!(
            service.at("status.loadBalancer.ingress"),
            &json!([{"ip": "192.0.2.7", "ipMode": "VIP"}, {"hostname": "a.example.com"}])
        );
    }

    #[test]
    fn an_external_name_gets_no_traffic_policy() {
        let service = defaulted(json!({
            "apiVersion": "v1", "kind": "Service", "spec": {"type": "ExternalName", "externalName": "example.com"},
        }));
        assert_eq!(
            service.at("spec"),
            &json!({"externalName": "example.com", "sessionAffinity": "None", "type": "ExternalName"})
        );
    }

    #[test]
    fn session_affinity_adds_and_removes_its_configuration() {
        let sticky = defaulted(
            json!({"apiVersion": "v1", "kind": "Service", "spec": {"sessionAffinity": "ClientIP"}}),
        );
        assert_eq!(sticky.int_at("spec.sessionAffinityConfig.clientIP.timeoutSeconds"), Some(10_800));
        let mut loose = sticky;
        loose.set_at("spec.sessionAffinity", "None");
        assert!(!defaulted(loose).has("spec.sessionAffinityConfig"));
    }

    #[test]
    fn a_network_policy_with_egress_rules_has_both_policy_types() {
        let policy = |spec: Value| {
            defaulted(json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "spec": spec}))
        };
        assert_eq!(policy(json!({})).at("spec.policyTypes"), &json!(["Ingress"]));
        let both = policy(json!({"egress": [{"ports": [{"port": 53}]}]}));
        assert_eq!(both.at("spec.policyTypes"), &json!(["Ingress", "Egress"]));
        assert_eq!(both.at("spec.egress"), &json!([{"ports": [{"port": 53, "protocol": "TCP"}]}]));
    }

    #[test]
    fn ports_of_an_endpoint_slice_have_an_empty_name() {
        let slice = defaulted(json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "ports": [{"port": 80}, {"name": "dns", "protocol": "UDP"}],
        }));
        assert_eq!(
            slice.at("ports"),
            &json!([{"name": "", "port": 80, "protocol": "TCP"}, {"name": "dns", "protocol": "UDP"}])
        );
    }

    #[test]
    fn parameters_of_an_ingress_class_default_to_cluster_scope() {
        let class = defaulted(json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "IngressClass", "spec": {"parameters": {"kind": "P", "name": "n"}},
        }));
        assert_eq!(class.str_at("spec.parameters.scope"), "Cluster");
    }
}
