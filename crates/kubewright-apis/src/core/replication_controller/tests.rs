//! Tests of ReplicationController.

use serde_json::json;

use crate::testing::{defaulted_spec, spec_errors, template};

#[test]
fn a_replication_controller_takes_labels_and_selector_from_its_template() {
    let object = defaulted_spec("v1", "ReplicationController", &json!({"template": template()}));
    assert_eq!(object["metadata"]["labels"], json!({"app": "a"}));
    assert_eq!(object["spec"]["selector"], json!({"app": "a"}));
    assert_eq!(object["spec"]["replicas"], 1);
}

#[test]
fn a_replication_controller_needs_a_template() {
    assert_eq!(
        spec_errors("v1", "ReplicationController", &json!({"replicas": -1})),
        [
            "spec.selector: Required value",
            "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
            "spec.template: Required value",
        ]
    );
}
