//! The row of an Event.

use serde_json::Value;

use crate::table::row::{Row, age, instant, non_empty};
use kubewright_apimachinery::object::Fields as _;

/// Expects an object of core/v1.
pub(crate) fn cells(row: &Row<'_>) -> Vec<Value> {
    let time = |path: &str| Some(row.str(path)).filter(|time| instant(time).is_some());
    let first = time("firstTimestamp").or(time("eventTime")).unwrap_or_default();
    let last = time("lastTimestamp").unwrap_or(first);
    let (last, count) = if row.has("series") {
        (row.str("series.lastObservedTime"), row.int("series.count"))
    } else {
        // Events of events.k8s.io have no count.
        (last, row.int("count").max(1))
    };
    let about = row.object.at("involvedObject");
    let slash = if about.str_at("name").is_empty() { "" } else { "/" };
    vec![
        age(last, row.now).into(),
        row.text("type"),
        row.text("reason"),
        format!("{}{slash}{}", about.str_at("kind").to_lowercase(), about.str_at("name")).into(),
        about.str_at("fieldPath").into(),
        event_source(row).into(),
        row.str("message").trim().into(),
        age(first, row.now).into(),
        count.into(),
        row.name(),
    ]
}

fn event_source(row: &Row<'_>) -> String {
    let component = non_empty(row.str("source.component"), row.str("reportingComponent"));
    let instance = non_empty(row.str("source.host"), row.str("reportingInstance"));
    if instance.is_empty() { component.to_owned() } else { format!("{component}, {instance}") }
}
