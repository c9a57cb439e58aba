//! Tests of PriorityClass.

use serde_json::json;

use crate::testing::{create_errors, update_errors};

#[test]
fn system_priority_classes_are_reserved() {
    let class = |name: &str, value: i64| {
        json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value
        })
    };
    assert_eq!(
        create_errors(&class("system-x", 1)),
        [
            "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. \
          error: system-x is not a known system priority class"
        ]
    );
    assert_eq!(
        create_errors(&class("x", 2_000_000_000)),
        ["value: Forbidden: maximum allowed value of a user defined priority is 1000000000"]
    );
    assert_eq!(
        update_errors(&class("x", 6), &class("x", 5)),
        ["value: Forbidden: may not be changed in an update."]
    );
}
