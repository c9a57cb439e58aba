//! Tests of Event of the core group.

use serde_json::json;

use crate::testing::{CREATED, row};

#[test]
fn an_event_shows_its_age_and_object() {
    let event = json!({
        "firstTimestamp": CREATED, "lastTimestamp": "2024-01-01T00:59:50Z", "count": 3, "type": "Normal", "reason": "R",
        "message": " M\n", "involvedObject": {"kind": "Pod", "name": "p", "fieldPath": "f"},
        "source": {"component": "c", "host": "h"},
    });
    assert_eq!(
        row("v1", "Event", event),
        json!(["10s", "Normal", "R", "pod/p", "f", "c, h", "M", "60m", 3, "o"])
    );
    let series = json!({
        "eventTime": "2024-01-01T00:00:00.500000Z", "type": "Normal", "reason": "R", "note": "N",
        "regarding": {"kind": "Node"}, "reportingController": "c", "reportingInstance": "i",
        "series": {"count": 5, "lastObservedTime": "2024-01-01T00:59:00.000000Z"},
    });
    assert_eq!(
        row("events.k8s.io/v1", "Event", series),
        json!(["60s", "Normal", "R", "node", "", "c, i", "N", "60m", 5, "o"])
    );
    assert_eq!(row("v1", "Event", json!({}))[0], "<unknown>");
    assert_eq!(row("v1", "Event", json!({}))[8], 1);
}
