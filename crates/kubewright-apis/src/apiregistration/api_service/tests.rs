//! Tests of APIService.

use serde_json::{Value, json};

use crate::testing::{prepared_for_create, row};

#[test]
fn a_local_api_service_is_available_at_once() {
    let object = prepared_for_create(
        json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "spec": {}}),
    );
    assert_eq!(object["status"]["conditions"][0]["reason"], "Local");
}

#[test]
fn an_api_service_shows_why_it_is_unavailable() {
    let service = |condition: Value| {
        let parts = json!({"spec": {"service": {"namespace": "n", "name": "s"}}, "status": {"conditions": [condition]}});
        row("apiregistration.k8s.io/v1", "APIService", parts)
    };
    assert_eq!(
        service(json!({"type": "Available", "status": "False", "reason": "MissingEndpoints"})),
        json!(["o", "n/s", "False (MissingEndpoints)", "60m"])
    );
    assert_eq!(service(json!({"type": "Available", "status": "True", "reason": "Passed"}))[2], "True");
    assert_eq!(
        row("apiregistration.k8s.io/v1", "APIService", json!({})),
        json!(["o", "Local", "Unknown", "60m"])
    );
}
