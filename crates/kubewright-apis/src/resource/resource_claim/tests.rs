//! Tests of ResourceClaim.

use serde_json::json;

use crate::testing::defaulted;

#[test]
fn a_device_request_defaults_to_one_device() {
    let object = defaulted(json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "spec": {"devices": {"requests": [
            {"name": "a", "exactly": {"deviceClassName": "c"}},
            {"name": "b", "firstAvailable": [{"name": "s", "deviceClassName": "c", "allocationMode": "All"}]}
        ]}}
    }));
    assert_eq!(
        object["spec"]["devices"]["requests"],
        json!([
            {"name": "a", "exactly": {"deviceClassName": "c", "allocationMode": "ExactCount", "count": 1}},
            {"name": "b", "firstAvailable": [{"name": "s", "deviceClassName": "c", "allocationMode": "All"}]}
        ])
    );
}
