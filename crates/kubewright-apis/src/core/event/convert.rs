//! Conversion of Event between core/v1 and events.k8s.io/v1, which have different field names.

use serde_json::{Map, Value, json};

/// Field names in core/v1 and events.k8s.io/v1. All others are the same.
const NAMES: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("reportingComponent", "reportingController"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];

pub(crate) fn to_core(mut event: Value) -> Value {
    let Some(fields) = event.as_object_mut() else { return event };
    for (core, events) in NAMES {
        rename(fields, events, core);
    }
    always(fields, &["involvedObject", "source"], &json!({}));
    always(fields, &["firstTimestamp", "lastTimestamp", "eventTime"], &Value::Null);
    always(fields, &["reportingComponent", "reportingInstance"], &json!(""));
    event
}

pub(crate) fn to_events(mut event: Value) -> Value {
    let Some(fields) = event.as_object_mut() else { return event };
    for (core, events) in NAMES {
        rename(fields, core, events);
    }
    always(fields, &["regarding", "deprecatedSource"], &json!({}));
    always(fields, &["deprecatedFirstTimestamp", "deprecatedLastTimestamp", "eventTime"], &Value::Null);
    for name in ["reportingController", "reportingInstance"] {
        if fields.get(name).is_some_and(|value| value == "") {
            fields.remove(name);
        }
    }
    if let Some(series) = fields.get_mut("series").and_then(Value::as_object_mut) {
        always(series, &["count"], &json!(0));
    }
    event
}

fn rename(fields: &mut Map<String, Value>, from: &str, to: &str) {
    if let Some(value) = fields.remove(from) {
        fields.insert(to.to_owned(), value);
    }
}

fn always(fields: &mut Map<String, Value>, names: &[&str], zero: &Value) {
    for name in names {
        fields.entry(*name).or_insert_with(|| zero.clone());
    }
}

#[cfg(test)]
mod tests {
    use crate::convert::convert;
    use kubewright_apimachinery::gvk::Gvk;
    use serde_json::json;

    const CORE: Gvk<'_> = Gvk { group: "", version: "v1", kind: "Event" };
    const EVENTS: Gvk<'_> = Gvk { group: "events.k8s.io", version: "v1", kind: "Event" };

    #[test]
    fn a_core_event_is_converted_to_events_k8s_io() {
        let core = json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "count": 1, "eventTime": null,
            "firstTimestamp": "2024-01-01T00:00:00Z", "lastTimestamp": "2024-01-01T00:00:00Z",
            "involvedObject": {"kind": "Pod", "name": "p"}, "message": "M", "reason": "R",
            "reportingComponent": "", "reportingInstance": "", "source": {"component": "c"}, "type": "Normal",
        });
        let events = json!({
            "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"}, "deprecatedCount": 1,
            "deprecatedFirstTimestamp": "2024-01-01T00:00:00Z", "deprecatedLastTimestamp": "2024-01-01T00:00:00Z",
            "deprecatedSource": {"component": "c"}, "eventTime": null, "note": "M", "reason": "R",
            "regarding": {"kind": "Pod", "name": "p"}, "type": "Normal",
        });
        assert_eq!(convert(core.clone(), EVENTS), events);
        assert_eq!(convert(events, CORE), core);
    }

    #[test]
    fn an_events_k8s_io_event_is_converted_to_core() {
        let events = json!({
            "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "n"}, "action": "A",
            "deprecatedFirstTimestamp": null, "deprecatedLastTimestamp": null, "deprecatedSource": {},
            "eventTime": "2024-01-01T00:00:00.000000Z", "note": "N", "reason": "R",
            "regarding": {"kind": "Pod", "name": "p"}, "reportingController": "example.com/c",
            "reportingInstance": "i", "type": "Normal",
            "series": {"count": 2, "lastObservedTime": "2024-01-02T00:00:00.000000Z"},
        });
        let core = json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": "n"}, "action": "A",
            "firstTimestamp": null, "lastTimestamp": null, "source": {},
            "eventTime": "2024-01-01T00:00:00.000000Z", "message": "N", "reason": "R",
            "involvedObject": {"kind": "Pod", "name": "p"}, "reportingComponent": "example.com/c",
            "reportingInstance": "i", "type": "Normal",
            "series": {"count": 2, "lastObservedTime": "2024-01-02T00:00:00.000000Z"},
        });
        assert_eq!(convert(events.clone(), CORE), core);
        assert_eq!(convert(core, EVENTS), events);
    }
}
