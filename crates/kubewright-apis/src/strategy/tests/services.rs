//! Tests of Services, endpoints and the kinds of networking.k8s.io.

use serde_json::{Value, json};

use crate::strategy::{prepare_create, prepare_subresource, prepare_update, warnings};
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::object::Fields as _;

fn updated(new: Value, old: &Value) -> Value {
    let mut new = new;
    prepare_update(Gvk::of(old), &mut new, old);
    new
}

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
    assert_eq!(updated(new.clone(), &ingress).int_at("metadata.generation"), Some(1));
    new.set_at("spec.ingressClassName", "b");
    new.remove_at("status");
    let new = updated(new, &ingress);
    assert_eq!(new.int_at("metadata.generation"), Some(2));
    assert_eq!(new.at("status"), &json!({"loadBalancer": {}}));
}

#[test]
fn an_endpoint_slice_increments_its_generation_except_for_annotations() {
    let old = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": "s", "generation": 3}, "endpoints": [{"addresses": ["192.0.2.1"]}], "ports": null,
    });
    let mut new = old.clone();
    new.set_at("metadata.annotations", json!({"a": "b"}));
    assert_eq!(updated(new, &old).int_at("metadata.generation"), Some(3));
    let mut new = old.clone();
    new.set_at("metadata.labels", json!({"a": "b"}));
    assert_eq!(updated(new, &old).int_at("metadata.generation"), Some(4));
    let mut new = old.clone();
    new.set_at("endpoints", json!([{"addresses": ["192.0.2.2"], "deprecatedTopology": {"a": "b"}}]));
    let new = updated(new, &old);
    assert_eq!(new.int_at("metadata.generation"), Some(4));
    assert_eq!(new.at("endpoints"), &json!([{"addresses": ["192.0.2.2"]}]));
}

#[test]
fn a_status_update_keeps_the_spec() {
    let old = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR",
        "metadata": {"name": "c", "labels": {"a": "b"}}, "spec": {"cidrs": ["10.0.0.0/24"]},
    });
    let mut new = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR",
        "metadata": {"name": "c", "finalizers": ["x/y"]}, "spec": {"cidrs": []}, "status": {"conditions": []},
    });
    prepare_subresource(Gvk::of(&old), "status", &mut new, &old);
    assert_eq!(new.at("spec"), old.at("spec"));
    assert_eq!(new.at("metadata"), old.at("metadata"));
    assert!(new.has("status"));
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
fn non_canonical_addresses_cause_warnings() {
    let endpoints = json!({
        "apiVersion": "v1", "kind": "Endpoints",
        "subsets": [{"addresses": [{"ip": "2001:DB8::1"}], "notReadyAddresses": [{"ip": "192.0.2.1"}]}],
    });
    assert_eq!(
        warnings(Gvk::of(&endpoints), &endpoints, None),
        [
            r#"subsets[0].addresses[0].ip: IPv6 address "2001:DB8::1" should be in RFC 5952 canonical format ("2001:db8::1")"#
        ]
    );
}
