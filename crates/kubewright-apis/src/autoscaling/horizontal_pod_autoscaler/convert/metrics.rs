//! Metrics in the format of v1's annotations.

use serde_json::{Value, json};

use crate::convert::Ordered;
use crate::validation::label_selector;
use kubewright_apimachinery::object::Fields as _;

/// Target metrics in the spec, or current metrics in the status. In v2 this is the name of the member with
/// the values; in the annotation it is a prefix of the value names.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Target,
    Current,
}

impl Side {
    fn name(self) -> &'static str {
        match self {
            Self::Target => "target",
            Self::Current => "current",
        }
    }
}

type Write = fn(&Value, Side) -> String;
type Read = fn(&Value, Side) -> Value;

/// The JSON of a v2 metric in the annotation format.
pub(super) fn to_v1(metric: &Value, side: Side) -> String {
    let mut text = Ordered::new().member("type", metric.at("type"));
    let sources: [(&str, Write); 5] = [
        ("object", object_to_v1),
        ("pods", pods_to_v1),
        ("resource", resource_to_v1),
        ("containerResource", resource_to_v1),
        ("external", external_to_v1),
    ];
    for (name, to_text) in sources {
        if metric.has(name) {
            text = text.text(name, &to_text(metric.at(name), side));
        }
    }
    text.finish()
}

/// Converts a metric from the annotation format to v2.
pub(super) fn from_v1(metric: &Value, side: Side) -> Value {
    let mut read = json!({"type": metric.str_at("type")});
    let sources: [(&str, Read); 5] = [
        ("object", object_from_v1),
        ("pods", pods_from_v1),
        ("resource", resource_from_v1),
        ("containerResource", resource_from_v1),
        ("external", external_from_v1),
    ];
    for (name, from) in sources {
        if metric.has(name) {
            read.set_at(name, from(metric.at(name), side));
        }
    }
    read
}

fn object_to_v1(source: &Value, side: Side) -> String {
    let described = source.at("describedObject");
    let target = Ordered::new()
        .member("kind", &described.str_at("kind").into())
        .member("name", &described.str_at("name").into())
        .optional("apiVersion", described.at("apiVersion"))
        .finish();
    let values = source.at(side.name());
    let text = Ordered::new()
        .text("target", &target)
        .member("metricName", &source.str_at("metric.name").into())
        .member(&format!("{}Value", side.name()), &quantity(values.at("value")));
    with_selector(text, "selector", source).optional("averageValue", values.at("averageValue")).finish()
}

fn object_from_v1(source: &Value, side: Side) -> Value {
    let average = source.at("averageValue");
    let mut values = json!({});
    let value = source.at(&format!("{}Value", side.name()));
    // The annotation format cannot omit the value. Zero next to an average means unset.
    if average.is_null() || value != "0" {
        set(&mut values, "value", value);
    }
    set(&mut values, "averageValue", average);
    with_type(&mut values, side, if average.is_null() { "Value" } else { "AverageValue" });
    let mut read = json!({
        "describedObject": source.at("target"),
        "metric": metric_from_v1(source, "selector"),
    });
    read.set_at(side.name(), values);
    read
}

fn pods_to_v1(source: &Value, side: Side) -> String {
    let values = source.at(side.name());
    let text = Ordered::new()
        .member("metricName", &source.str_at("metric.name").into())
        .member(&format!("{}AverageValue", side.name()), &quantity(values.at("averageValue")));
    with_selector(text, "selector", source).finish()
}

fn pods_from_v1(source: &Value, side: Side) -> Value {
    let mut values = json!({});
    set(&mut values, "averageValue", source.at(&format!("{}AverageValue", side.name())));
    with_type(&mut values, side, "AverageValue");
    let mut read = json!({"metric": metric_from_v1(source, "selector")});
    read.set_at(side.name(), values);
    read
}

fn resource_to_v1(source: &Value, side: Side) -> String {
    let values = source.at(side.name());
    let text = Ordered::new()
        .member("name", &source.str_at("name").into())
        .optional(&format!("{}AverageUtilization", side.name()), values.at("averageUtilization"));
    let name = format!("{}AverageValue", side.name());
    let text = match side {
        Side::Target => text.optional(&name, values.at("averageValue")),
        Side::Current => text.member(&name, &quantity(values.at("averageValue"))),
    };
    text.optional("container", source.at("container")).finish()
}

fn resource_from_v1(source: &Value, side: Side) -> Value {
    let utilization = source.at(&format!("{}AverageUtilization", side.name()));
    let mut values = json!({});
    set(&mut values, "averageUtilization", utilization);
    set(&mut values, "averageValue", source.at(&format!("{}AverageValue", side.name())));
    with_type(&mut values, side, if utilization.is_null() { "AverageValue" } else { "Utilization" });
    let mut read = json!({"name": source.str_at("name")});
    set(&mut read, "container", source.at("container"));
    read.set_at(side.name(), values);
    read
}

fn external_to_v1(source: &Value, side: Side) -> String {
    let values = source.at(side.name());
    let text = Ordered::new().member("metricName", &source.str_at("metric.name").into());
    let text = with_selector(text, "metricSelector", source);
    let name = format!("{}Value", side.name());
    let text = match side {
        Side::Target => text.optional(&name, values.at("value")),
        Side::Current => text.member(&name, &quantity(values.at("value"))),
    };
    text.optional(&format!("{}AverageValue", side.name()), values.at("averageValue")).finish()
}

fn external_from_v1(source: &Value, side: Side) -> Value {
    let value = source.at(&format!("{}Value", side.name()));
    let mut values = json!({});
    set(&mut values, "value", value);
    set(&mut values, "averageValue", source.at(&format!("{}AverageValue", side.name())));
    with_type(&mut values, side, if value.is_null() { "AverageValue" } else { "Value" });
    let mut read = json!({"metric": metric_from_v1(source, "metricSelector")});
    read.set_at(side.name(), values);
    read
}

fn metric_from_v1(source: &Value, selector: &str) -> Value {
    let mut metric = json!({"name": source.str_at("metricName")});
    set(&mut metric, "selector", source.at(selector));
    metric
}

fn with_selector(text: Ordered, name: &str, source: &Value) -> Ordered {
    let selector = source.at("metric.selector");
    if selector.is_null() { text } else { text.text(name, &label_selector::printed(selector)) }
}

/// Sets the type. Only target metrics have one.
fn with_type(values: &mut Value, side: Side, name: &str) {
    if side == Side::Target {
        values.set_at("type", name);
    }
}

/// A quantity for a field that cannot be empty.
fn quantity(value: &Value) -> Value {
    if value.is_null() { "0".into() } else { value.clone() }
}

fn set(object: &mut Value, name: &str, value: &Value) {
    if !value.is_null() {
        object.set_at(name, value.clone());
    }
}
