//! Tests of Service.

use serde_json::{Value, json};

use crate::kinds::rules;
use crate::strategy::warnings;
use crate::testing::{defaulted, request_errors, row, update_errors};
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::object::Fields as _;

fn service(spec: Value) -> Vec<String> {
    let mut service = json!({"apiVersion": "v1", "kind": "Service"});
    service.set_at("spec", spec);
    request_errors(service)
}

/// A stored service with `changes` in its spec.
fn stored(changes: &Value) -> Value {
    let mut service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"},
        "spec": {
            "type": "ClusterIP", "clusterIP": "10.0.0.7", "clusterIPs": ["10.0.0.7"], "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack", "internalTrafficPolicy": "Cluster", "sessionAffinity": "None",
            "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
        },
        "status": {"loadBalancer": {}},
    });
    service.object_mut("spec").extend(changes.as_object().cloned().unwrap_or_default());
    service
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
fn ignored_fields_of_a_service_cause_warnings() {
    let headless = json!({
        "apiVersion": "v1", "kind": "Service",
        "spec": {
            "type": "ClusterIP", "clusterIP": "None", "clusterIPs": ["None"], "sessionAffinity": "ClientIP",
            "externalName": "example.com", "trafficDistribution": "PreferClose",
        },
    });
    assert_eq!(
        warnings(Gvk::of(&headless), &headless, None),
        [
            "spec.SessionAffinity is ignored for headless services",
            r#"spec.externalName is ignored when spec.type is not "ExternalName""#,
            r#"spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone""#,
        ]
    );
}

#[test]
fn ports_of_a_service_must_be_unique() {
    assert_eq!(service(json!({})), ["spec.ports: Required value"]);
    assert_eq!(
        service(json!({"ports": [{"port": 0}]})),
        [
            "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
            "spec.ports[0].targetPort: Invalid value: 0: must be between 1 and 65535, inclusive",
        ]
    );
    assert_eq!(
        service(json!({"ports": [{"port": 80}, {"port": 81}]})),
        ["spec.ports[0].name: Required value", "spec.ports[1].name: Required value"]
    );
    assert_eq!(
        service(json!({"ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "a"}]})),
        [r#"spec.ports[1].name: Duplicate value: "a""#]
    );
    assert_eq!(
        service(json!({"ports": [{"port": 80, "name": "a"}, {"port": 80, "name": "b"}]})),
        [
            r#"spec.ports[1]: Duplicate value: {"Name":"","Protocol":"TCP","AppProtocol":null,"Port":80,"TargetPort":0,"NodePort":0}"#
        ]
    );
    assert_eq!(
        service(json!({"ports": [{"port": 80, "targetPort": "A B"}]})),
        [
            r#"spec.ports[0].targetPort: Invalid value: "A B": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"#,
            r#"spec.ports[0].targetPort: Invalid value: "A B": must contain at least one letter (a-z)"#,
        ]
    );
}

#[test]
fn fields_of_a_service_must_match_its_type() {
    let port = json!([{"port": 80}]);
    assert_eq!(
        service(json!({"type": "Bogus", "ports": port})),
        [
            r#"spec.type: Unsupported value: "Bogus": supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort""#
        ]
    );
    assert_eq!(service(json!({"type": "ExternalName"})), ["spec.externalName: Required value"]);
    assert_eq!(
        service(json!({"ports": [{"port": 80, "nodePort": 30001}]})),
        ["spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"]
    );
    assert_eq!(
        service(json!({"ports": port, "externalTrafficPolicy": "Local"})),
        [
            r#"spec.externalTrafficPolicy: Invalid value: "Local": may only be set for externally-accessible services"#
        ]
    );
    assert_eq!(
        service(json!({"ports": port, "loadBalancerSourceRanges": ["1.2.3.4/8"]})),
        [
            "spec.LoadBalancerSourceRanges: Forbidden: may only be used when `type` is 'LoadBalancer'",
            r#"spec.LoadBalancerSourceRanges[0]: Invalid value: "1.2.3.4/8": must not have bits set beyond the prefix length"#,
        ]
    );
    assert_eq!(
        service(json!({"type": "NodePort", "clusterIP": "None", "ports": port})),
        [r#"spec.clusterIPs[0]: Invalid value: "None": may not be set to 'None' for NodePort services"#]
    );
    assert_eq!(
        service(json!({"ports": port, "loadBalancerClass": "a/b", "allocateLoadBalancerNodePorts": false})),
        [
            "spec.allocateLoadBalancerNodePorts: Forbidden: may only be used when `type` is 'LoadBalancer'",
            "spec.loadBalancerClass: Forbidden: may only be used when `type` is 'LoadBalancer'",
        ]
    );
    assert_eq!(
        service(json!({"type": "LoadBalancer", "externalTrafficPolicy": "Local", "ports": port})),
        ["spec.healthCheckNodePort: Required value"]
    );
}

#[test]
fn values_of_a_service_must_be_supported() {
    let port = json!([{"port": 80}]);
    assert_eq!(
        service(json!({"ports": port, "sessionAffinity": "X"})),
        [r#"spec.sessionAffinity: Unsupported value: "X": supported values: "ClientIP", "None""#]
    );
    assert_eq!(
        service(json!({
            "ports": port, "sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 0}},
        })),
        [
            "spec.sessionAffinityConfig.clientIP.timeoutSeconds: Invalid value: 0: must be greater than 0 and less than 86400"
        ]
    );
    assert_eq!(
        service(json!({"ports": port, "internalTrafficPolicy": "X"})),
        [r#"spec.internalTrafficPolicy: Unsupported value: "X": supported values: "Cluster", "Local""#]
    );
    assert_eq!(
        service(json!({"ports": port, "externalIPs": ["x", "127.0.0.1"]})),
        [
            r#"spec.externalIPs[0]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"#,
            r#"spec.externalIPs[1]: Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128)"#,
        ]
    );
}

#[test]
fn the_cluster_ip_of_a_service_is_immutable() {
    let old = stored(&json!({}));
    assert!(update_errors(&old, &old).is_empty());
    let new = stored(&json!({"clusterIP": "10.0.0.250", "clusterIPs": ["10.0.0.250"]}));
    assert_eq!(
        update_errors(&new, &old),
        [r#"spec.clusterIPs[0]: Invalid value: ["10.0.0.250"]: may not change once set"#]
    );
    let new = stored(&json!({"clusterIP": "None", "clusterIPs": ["None"]}));
    assert_eq!(
        update_errors(&new, &old),
        [r#"spec.clusterIPs[0]: Invalid value: ["None"]: may not change once set"#]
    );
}

#[test]
fn the_load_balancer_class_is_immutable() {
    let balanced = |class: &str| {
        stored(&json!({
            "type": "LoadBalancer", "externalTrafficPolicy": "Cluster", "allocateLoadBalancerNodePorts": true,
            "loadBalancerClass": class,
        }))
    };
    assert_eq!(
        update_errors(&balanced("a/c"), &balanced("a/b")),
        [r#"spec.loadBalancerClass: Invalid value: "a/c": may not change once set"#]
    );
}

#[test]
fn only_load_balancers_can_have_ingress_addresses_in_status() {
    let with_ip = |spec: &Value, ingress: Value| {
        let mut service = stored(spec);
        service.set_at("status.loadBalancer.ingress", json!([ingress]));
        let errors = (rules(Gvk::of(&service)).validate_subresource)("status", &service, &service);
        errors.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let balanced = json!({"type": "LoadBalancer"});
    assert!(with_ip(&balanced, json!({"ip": "192.0.2.7", "ipMode": "VIP"})).is_empty());
    assert_eq!(
        with_ip(&balanced, json!({"ip": "x", "ipMode": "VIP"})),
        [
            r#"status.loadBalancer.ingress[0].ip: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"#
        ]
    );
    assert_eq!(
        with_ip(&balanced, json!({"hostname": "1.2.3.4", "ipMode": "VIP"})),
        [
            "status.loadBalancer.ingress[0].ipMode: Forbidden: may not be specified when `ip` is not set",
            r#"status.loadBalancer.ingress[0].hostname: Invalid value: "1.2.3.4": must be a DNS name, not an IP address"#,
        ]
    );
    assert_eq!(
        with_ip(&json!({}), json!({"ip": "192.0.2.7"})),
        ["status.loadBalancer.ingress: Forbidden: may only be used when `spec.type` is 'LoadBalancer'"]
    );
}

#[test]
fn services_show_their_addresses_and_ports() {
    let ports = json!([{"port": 80, "nodePort": 30001, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]);
    let service = |ty: &str, spec: Value, ingress: Value| {
        let mut parts = json!({"spec": spec, "status": {"loadBalancer": {"ingress": ingress}}});
        parts.set_at("spec.type", ty);
        row("v1", "Service", parts)
    };
    assert_eq!(
        service(
            "LoadBalancer",
            json!({"clusterIPs": ["10.0.0.1"], "ports": ports, "selector": {"a": "b"}}),
            json!([])
        ),
        json!(["o", "LoadBalancer", "10.0.0.1", "<pending>", "80:30001/TCP,53/UDP", "60m", "a=b"])
    );
    let external = |ty: &str, spec: Value, ingress: Value| service(ty, spec, ingress)[3].clone();
    let ingress = json!([{"ip": "192.0.2.9"}, {"hostname": "h"}, {"ip": "192.0.2.1"}]);
    assert_eq!(external("LoadBalancer", json!({}), ingress.clone()), "192.0.2.1,192.0.2.9,h");
    assert_eq!(
        external("LoadBalancer", json!({"externalIPs": ["1.1.1.1"]}), ingress),
        "192.0.2.1,192.0.2.9,h,1.1.1.1"
    );
    assert_eq!(
        external("ClusterIP", json!({"externalIPs": ["1.1.1.1", "2.2.2.2"]}), json!([])),
        "1.1.1.1,2.2.2.2"
    );
    assert_eq!(external("ExternalName", json!({"externalName": "example.org"}), json!([])), "example.org");
}
