//! Tests of NetworkPolicy.

use serde_json::{Value, json};

use crate::testing::{defaulted, networking};
use kubewright_apimachinery::object::Fields as _;

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
fn peers_and_ports_of_a_network_policy_are_validated() {
    let ingress = |rule: Value| networking("NetworkPolicy", json!({"podSelector": {}, "ingress": [rule]}));
    assert_eq!(
        networking("NetworkPolicy", json!({"podSelector": {}, "policyTypes": ["X"]})),
        [r#"spec.policyTypes[0]: Unsupported value: "X": supported values: "Ingress", "Egress""#]
    );
    assert_eq!(
        ingress(json!({"from": [{}]})),
        ["spec.ingress[0].from[0]: Required value: must specify a peer"]
    );
    assert_eq!(
        ingress(json!({"from": [{"ipBlock": {"cidr": "x"}}]})),
        [
            r#"spec.ingress[0].from[0].ipBlock.cidr: Invalid value: "x": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"#
        ]
    );
    assert_eq!(
        ingress(json!({"from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["1.0.0.0/8"]}}]})),
        [
            r#"spec.ingress[0].from[0].ipBlock.except[0]: Invalid value: "1.0.0.0/8": must be a strict subset of `cidr`"#
        ]
    );
    assert_eq!(
        ingress(json!({"ports": [{"port": 80, "endPort": 70}]})),
        ["spec.ingress[0].ports[0].endPort: Invalid value: 80: must be greater than or equal to `port`"]
    );
    assert_eq!(
        ingress(json!({"ports": [{"endPort": 70}]})),
        [
            "spec.ingress[0].ports[0].endPort: Invalid value: 70: may not be specified when `port` is not specified"
        ]
    );
}
