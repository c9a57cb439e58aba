//! Tests of EndpointSlice.

use serde_json::{Value, json};

use crate::testing::{defaulted, prepared_for_update, request_errors};
use kubewright_apimachinery::object::Fields as _;

fn slice(mut slice: Value) -> Vec<String> {
    slice.set_at("apiVersion", "discovery.k8s.io/v1");
    slice.set_at("kind", "EndpointSlice");
    request_errors(slice)
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
fn an_endpoint_slice_increments_its_generation_except_for_annotations() {
    let old = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": "s", "generation": 3}, "endpoints": [{"addresses": ["192.0.2.1"]}], "ports": null,
    });
    let mut new = old.clone();
    new.set_at("metadata.annotations", json!({"a": "b"}));
    assert_eq!(prepared_for_update(new, &old).int_at("metadata.generation"), Some(3));
    let mut new = old.clone();
    new.set_at("metadata.labels", json!({"a": "b"}));
    assert_eq!(prepared_for_update(new, &old).int_at("metadata.generation"), Some(4));
    let mut new = old.clone();
    new.set_at("endpoints", json!([{"addresses": ["192.0.2.2"], "deprecatedTopology": {"a": "b"}}]));
    let new = prepared_for_update(new, &old);
    assert_eq!(new.int_at("metadata.generation"), Some(4));
    assert_eq!(new.at("endpoints"), &json!([{"addresses": ["192.0.2.2"]}]));
}

#[test]
fn addresses_of_an_endpoint_slice_must_match_its_type() {
    let addresses = |kind: &str, addresses: Value| {
        slice(json!({"addressType": kind, "endpoints": [{"addresses": addresses}]}))
    };
    assert_eq!(slice(json!({})), ["addressType: Required value"]);
    assert_eq!(
        slice(json!({"addressType": "X"})),
        [r#"addressType: Unsupported value: "X": supported values: "FQDN", "IPv4", "IPv6""#]
    );
    assert_eq!(
        addresses("IPv4", json!([])),
        ["endpoints[0].addresses: Required value: must contain at least 1 address"]
    );
    assert_eq!(
        addresses("IPv4", json!(["x"])),
        [
            r#"endpoints[0].addresses[0]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"#
        ]
    );
    assert_eq!(
        addresses("IPv6", json!(["192.0.2.1"])),
        [r#"endpoints[0].addresses: Invalid value: "192.0.2.1": must be an IPv6 address"#]
    );
    assert_eq!(
        addresses("FQDN", json!(["localhost"])),
        [
            r#"endpoints[0].addresses[0]: Invalid value: "localhost": should be a domain with at least two segments separated by dots"#
        ]
    );
    assert_eq!(
        slice(json!({"addressType": "IPv4", "ports": [{"port": 80}, {"port": 81}]})),
        [r#"ports[1].name: Duplicate value: """#]
    );
}
