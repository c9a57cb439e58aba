//! Tests of Endpoints.

use serde_json::{Value, json};

use crate::strategy::warnings;
use crate::testing::request_errors;
use kubewright_apimachinery::gvk::Gvk;

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

#[test]
fn addresses_of_endpoints_must_be_routable() {
    let endpoints =
        |subset: Value| request_errors(json!({"apiVersion": "v1", "kind": "Endpoints", "subsets": [subset]}));
    assert_eq!(
        endpoints(json!({"ports": [{"port": 80}]})),
        ["subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`"]
    );
    assert_eq!(
        endpoints(json!({"addresses": [{"ip": "0.0.0.0"}, {"ip": "169.254.1.1"}], "ports": [{"port": 80}]})),
        [
            r#"subsets[0].addresses[0].ip: Invalid value: "0.0.0.0": may not be unspecified (0.0.0.0)"#,
            r#"subsets[0].addresses[1].ip: Invalid value: "169.254.1.1": may not be in the link-local range (169.254.0.0/16, fe80::/10)"#,
        ]
    );
}
