//! Tests of Ingress.

use serde_json::{Value, json};

use crate::strategy::{prepare_create, warnings};
use crate::testing::{networking, prepared_for_update, row};
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::object::Fields as _;

#[test]
fn an_ingress_is_created_without_status_and_has_a_generation() {
    let mut ingress = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "i"},
        "spec": {"ingressClassName": "a"}, "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}},
    });
    let copy = ingress.clone();
    prepare_create(Gvk::of(&copy), &mut ingress);
    assert_eq!(ingress.at("status"), &json!({"loadBalancer": {}}));
    assert_eq!(ingress.int_at("metadata.generation"), Some(1));

    let mut new = ingress.clone();
    new.set_at("metadata.labels", json!({"a": "b"}));
    assert_eq!(prepared_for_update(new.clone(), &ingress).int_at("metadata.generation"), Some(1));
    new.set_at("spec.ingressClassName", "b");
    new.remove_at("status");
    let new = prepared_for_update(new, &ingress);
    assert_eq!(new.int_at("metadata.generation"), Some(2));
    assert_eq!(new.at("status"), &json!({"loadBalancer": {}}));
}

#[test]
fn a_new_ingress_class_annotation_causes_a_warning() {
    let ingress = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": {"annotations": {"kubernetes.io/ingress.class": "nginx"}},
    });
    let gvk = Gvk::of(&ingress);
    assert_eq!(
        warnings(gvk, &ingress, None),
        [
            r#"annotation "kubernetes.io/ingress.class" is deprecated, please use 'spec.ingressClassName' instead"#
        ]
    );
    assert!(warnings(gvk, &ingress, Some(&ingress)).is_empty());
}

#[test]
fn ingress_rules_and_backends_are_validated() {
    let path = |path: Value| networking("Ingress", json!({"rules": [{"http": {"paths": [path]}}]}));
    let backend = json!({"service": {"name": "s", "port": {"number": 80}}});
    assert_eq!(
        networking("Ingress", json!({})),
        ["spec: Invalid value: null: either `defaultBackend` or `rules` must be specified"]
    );
    assert_eq!(
        networking("Ingress", json!({"rules": [{"host": "1.2.3.4"}]})),
        [r#"spec.rules[0].host: Invalid value: "1.2.3.4": must be a DNS name, not an IP address"#]
    );
    assert!(networking("Ingress", json!({"rules": [{"host": "*.a.com"}]})).is_empty());
    assert_eq!(
        path(json!({"path": "/", "backend": backend})),
        ["spec.rules[0].http.paths[0].pathType: Required value: pathType must be specified"]
    );
    assert_eq!(
        path(json!({"path": "/", "pathType": "X", "backend": backend})),
        [
            r#"spec.rules[0].http.paths[0].pathType: Unsupported value: "X": supported values: "Exact", "ImplementationSpecific", "Prefix""#
        ]
    );
    assert_eq!(
        path(json!({"path": "/a//b", "pathType": "Prefix", "backend": backend})),
        [r#"spec.rules[0].http.paths[0].path: Invalid value: "/a//b": must not contain '//'"#]
    );
    assert_eq!(
        path(json!({"path": "/", "pathType": "Prefix", "backend": {"service": {"name": ""}}})),
        [
            "spec.rules[0].http.paths[0].backend.service.name: Required value",
            "spec.rules[0].http.paths[0].backend: Required value: port name or number is required",
        ]
    );
    assert_eq!(
        path(json!({"path": "/", "pathType": "Prefix", "backend": {}})),
        [
            r#"spec.rules[0].http.paths[0].backend: Invalid value: "": resource or service backend is required"#
        ]
    );
}

#[test]
fn an_ingress_shows_its_first_hosts() {
    let hosts = |hosts: &[&str]| {
        let rules: Vec<Value> = hosts.iter().map(|host| json!({"host": host})).collect();
        row("networking.k8s.io/v1", "Ingress", json!({"spec": {"rules": rules}}))[2].clone()
    };
    assert_eq!(hosts(&[]), "*");
    assert_eq!(hosts(&["a", "", "b"]), "a,b");
    assert_eq!(hosts(&["a", "b", "c"]), "a,b,c");
    assert_eq!(hosts(&["a", "b", "c", ""]), "a,b,c + 1 more...");
}
