//! Compares defaults of Services, endpoints and the kinds of networking.k8s.io with recorded responses.

use serde_json::{Value, json};

use crate::defaults::apply;
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::object::Fields as _;

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
    let sticky =
        defaulted(json!({"apiVersion": "v1", "kind": "Service", "spec": {"sessionAffinity": "ClientIP"}}));
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
