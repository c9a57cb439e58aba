//! Tests of Event of events.k8s.io.

use serde_json::json;

use crate::testing::{create_errors, update_errors};

#[test]
fn events_of_events_k8s_io_are_immutable() {
    let event = |note: &str| {
        json!({
            "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"namespace": "ns"}, "note": note,
            "eventTime": "2024-01-01T00:00:00.000000Z", "reportingController": "c.io/x", "reportingInstance": "i",
            "action": "a", "reason": "r", "type": "Normal", "regarding": {"namespace": "ns"}
        })
    };
    assert!(create_errors(&event("n")).is_empty());
    assert_eq!(
        update_errors(&event("changed"), &event("n")),
        ["message: Invalid value: \"changed\": field is immutable"]
    );
}
