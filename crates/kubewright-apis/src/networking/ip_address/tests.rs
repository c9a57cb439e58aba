//! Tests of IPAddress.

use serde_json::json;

use crate::testing::update_errors;

#[test]
fn the_parent_of_an_ip_address_is_immutable() {
    let address = |name: &str| {
        json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "IPAddress", "metadata": {"name": "10.0.0.7"},
            "spec": {"parentRef": {"resource": "services", "namespace": "ns", "name": name}},
        })
    };
    assert_eq!(
        update_errors(&address("b"), &address("a")),
        [
            r#"spec.parentRef: Invalid value: {"Group":"","Resource":"services","Namespace":"ns","Name":"b"}: field is immutable"#
        ]
    );
}
