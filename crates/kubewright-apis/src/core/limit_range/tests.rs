//! Tests of LimitRange.

use serde_json::json;

use crate::testing::{create_errors, defaulted};

#[test]
fn container_limits_are_derived_from_each_other() {
    let object = defaulted(json!({
        "apiVersion": "v1", "kind": "LimitRange", "spec": {"limits": [
            {"type": "Container", "default": {"cpu": "500m"}, "max": {"cpu": "1"}},
            {"type": "Container", "min": {"memory": "1Mi"}, "max": {"cpu": "1"}},
            {"type": "Pod", "max": {"memory": "1Gi"}}
        ]}
    }));
    assert_eq!(
        object["spec"]["limits"],
        json!([
            {"type": "Container", "default": {"cpu": "500m"}, "defaultRequest": {"cpu": "500m"}, "max": {"cpu": "1"}},
            {"type": "Container", "min": {"memory": "1Mi"}, "max": {"cpu": "1"}, "default": {"cpu": "1"},
             "defaultRequest": {"cpu": "1", "memory": "1Mi"}},
            {"type": "Pod", "max": {"memory": "1Gi"}}
        ])
    );
}

#[test]
fn limits_must_be_consistent() {
    let object = json!({
        "apiVersion": "v1", "kind": "LimitRange",
        "spec": {"limits": [{
            "type": "Container", "min": {"cpu": "2"}, "max": {"cpu": "1"}, "default": {"cpu": "1"},
            "defaultRequest": {"cpu": "1"}
        }]}
    });
    assert_eq!(
        create_errors(&object),
        [
            "spec.limits[0].min[cpu]: Invalid value: \"2\": min value 2 is greater than max value 1",
            "spec.limits[0].defaultRequest[cpu]: Invalid value: \"1\": min value 2 is greater than default request \
             value 1",
            "spec.limits[0].default[cpu]: Invalid value: \"2\": min value 2 is greater than default value 1",
        ]
    );
}
