//! The row of a HorizontalPodAutoscaler.

use serde_json::Value;

use crate::table::row::{NONE, Row, UNKNOWN, UNSET, first};
use kubewright_apimachinery::object::Fields as _;

/// Expects an object of `autoscaling/v2`.
pub(super) fn cells(row: &Row<'_>) -> Vec<Value> {
    let target = row.object.at("spec.scaleTargetRef");
    let min = row.object.int_at("spec.minReplicas");
    vec![
        row.name(),
        format!("{}/{}", target.str_at("kind"), target.str_at("name")).into(),
        metrics(row.list("spec.metrics"), row.list("status.currentMetrics")).into(),
        min.map_or_else(|| UNSET.into(), |min| min.to_string().into()),
        row.number("spec.maxReplicas"),
        row.number("status.currentReplicas"),
        row.age(),
    ]
}

/// Current and target value of each metric. Specs and statuses are matched by index.
fn metrics(specs: &[Value], statuses: &[Value]) -> String {
    if specs.is_empty() {
        return NONE.to_owned();
    }
    let of = |(index, spec): (usize, &Value)| metric(spec, statuses.get(index).unwrap_or(&Value::Null));
    let shown: Vec<String> = specs.iter().enumerate().map(of).collect();
    first(&shown, 2, ", ")
}

fn metric(spec: &Value, status: &Value) -> String {
    let source = match spec.str_at("type") {
        "External" => "external",
        "Pods" => "pods",
        "Object" => "object",
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        _ => return "<unknown type>".to_owned(),
    };
    let target = spec.at(source).at("target");
    let current = Some(status.at(source)).filter(|s| !s.is_null()).map(|s| s.at("current"));
    match source {
        "pods" => pair(current, target, "averageValue"),
        "external" | "object" if target.has("averageValue") => {
            let current = current.filter(|current| current.has("averageValue"));
            format!("{} (avg)", pair(current, target, "averageValue"))
        }
        "external" | "object" => pair(current, target, "value"),
        _ => {
            let name = spec.at(source).str_at("name");
            if target.has("averageValue") {
                return format!("{name}: {}", pair(current, target, "averageValue"));
            }
            let percent =
                |value: &Value| value.int_at("averageUtilization").map(|percent| format!("{percent}%"));
            let current = current.and_then(percent).unwrap_or_else(|| UNKNOWN.to_owned());
            format!("{name}: {current}/{}", percent(target).unwrap_or_else(|| "<auto>".to_owned()))
        }
    }
}

fn pair(current: Option<&Value>, target: &Value, field: &str) -> String {
    // Go's format of a nil quantity.
    let quantity = |value: &Value| value.at(field).as_str().unwrap_or("<nil>").to_owned();
    format!("{}/{}", current.map_or_else(|| UNKNOWN.to_owned(), quantity), quantity(target))
}
