//! Tests of IngressClass.

use serde_json::json;

use crate::testing::{defaulted, networking, update_errors};
use kubewright_apimachinery::object::Fields as _;

#[test]
fn parameters_of_an_ingress_class_default_to_cluster_scope() {
    let class = defaulted(json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "IngressClass", "spec": {"parameters": {"kind": "P", "name": "n"}},
    }));
    assert_eq!(class.str_at("spec.parameters.scope"), "Cluster");
}

#[test]
fn the_controller_of_an_ingress_class_is_a_path_and_immutable() {
    assert_eq!(networking("IngressClass", json!({})), ["spec.controller: Required value"]);
    assert_eq!(
        networking("IngressClass", json!({"controller": "c"})),
        [r#"spec.controller: Invalid value: "c": must be a domain-prefixed path (such as "acme.io/foo")"#]
    );
    assert_eq!(
        networking(
            "IngressClass",
            json!({"controller": "a.io/c", "parameters": {"kind": "K", "name": "n", "scope": "Namespace"}})
        ),
        ["spec.parameters.namespace: Required value: `parameters.scope` is set to 'Namespace'"]
    );
    let class = |controller: &str| json!({"apiVersion": "networking.k8s.io/v1", "kind": "IngressClass", "spec": {"controller": controller}});
    assert_eq!(
        update_errors(&class("a.io/d"), &class("a.io/c")),
        [r#"spec.controller: Invalid value: "a.io/d": field is immutable"#]
    );
}
