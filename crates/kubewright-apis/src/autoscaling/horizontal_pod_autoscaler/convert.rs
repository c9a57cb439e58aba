//! Conversion of HorizontalPodAutoscaler between autoscaling/v1 and autoscaling/v2.
//!
//! v1 only has a field for CPU utilization. Other metrics and the behavior are stored in annotations as JSON:
//! metrics in the format of v2beta1, the behavior with Go's field names. Clients read these annotations, so
//! they have Go's field order. Annotations that cannot be parsed are dropped.

mod metrics;

use serde_json::{Map, Value, json};

use self::metrics::Side;
use crate::convert::Ordered;
use kubewright_apimachinery::object::Fields as _;

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";

/// The metrics in the annotations of a v1 object, in v2 form. Excludes CPU utilization.
pub(super) fn other_metrics(v1: &Value) -> Vec<Value> {
    let metrics = carried(v1, METRICS);
    let metrics = metrics.iter().filter_map(Value::as_array).flatten();
    metrics.map(|metric| metrics::from_v1(metric, Side::Target)).collect()
}

/// Converts v2 to v1.
pub(super) fn to_v1(mut object: Value) -> Value {
    drop_carried(&mut object);
    let mut carry: Vec<(&str, String)> = Vec::new();

    let metrics = object.remove_at("spec.metrics").unwrap_or_default();
    let metrics = metrics.as_array().map_or(&[][..], Vec::as_slice);
    if let Some(cpu) = metrics.iter().find(|metric| is_cpu(metric)) {
        let utilization = cpu.at("resource.target.averageUtilization");
        if !utilization.is_null() {
            object.set_at("spec.targetCPUUtilizationPercentage", utilization.clone());
        }
    }
    let others = metrics.iter().filter(|m| !(is_cpu(m) && m.has("resource.target.averageUtilization")));
    let others: Vec<String> = others.map(|metric| metrics::to_v1(metric, Side::Target)).collect();
    if !others.is_empty() {
        carry.push((METRICS, format!("[{}]", others.join(","))));
    }

    if let Some(behavior) = object.remove_at("spec.behavior")
        && !behavior.is_null()
    {
        carry.push((BEHAVIOR, behavior_text(&behavior)));
    }

    let current = object.remove_at("status.currentMetrics").unwrap_or_default();
    let current = current.as_array().map_or(&[][..], Vec::as_slice);
    for cpu in current.iter().filter(|metric| is_cpu(metric)) {
        let utilization = cpu.at("resource.current.averageUtilization");
        if !utilization.is_null() {
            object.set_at("status.currentCPUUtilizationPercentage", utilization.clone());
        }
    }
    // Includes the CPU metric, because v1's field cannot hold its raw value.
    let texts: Vec<String> = current.iter().map(|metric| metrics::to_v1(metric, Side::Current)).collect();
    if !texts.is_empty() {
        carry.push((CURRENT_METRICS, format!("[{}]", texts.join(","))));
    }

    let conditions = object.remove_at("status.conditions").unwrap_or_default();
    if conditions.as_array().is_some_and(|conditions| !conditions.is_empty()) {
        carry.push((CONDITIONS, Ordered::list(&conditions, condition_text)));
    }

    object.default_at("status.currentReplicas", 0);
    object.default_at("status.desiredReplicas", 0);
    if !carry.is_empty() {
        let annotations = object.object_mut("metadata.annotations");
        annotations.extend(carry.into_iter().map(|(name, text)| (name.to_owned(), text.into())));
    }
    object
}

/// Converts v1 to v2.
pub(super) fn to_v2(mut object: Value) -> Value {
    let mut metrics = other_metrics(&object);
    if let Some(utilization) = object.remove_at("spec.targetCPUUtilizationPercentage")
        && !utilization.is_null()
    {
        let target = json!({"type": "Utilization", "averageUtilization": utilization});
        metrics.push(json!({"type": "Resource", "resource": {"name": "cpu", "target": target}}));
    }
    if !metrics.is_empty() {
        object.set_at("spec.metrics", metrics);
    }

    if let Some(behavior) = carried(&object, BEHAVIOR).and_then(|text| behavior_from(&text)) {
        object.set_at("spec.behavior", behavior);
    }

    let utilization = object.remove_at("status.currentCPUUtilizationPercentage").unwrap_or_default();
    let mut current = Value::Null;
    if !utilization.is_null() {
        let value = json!({"averageUtilization": utilization});
        current = json!([{"type": "Resource", "resource": {"name": "cpu", "current": value}}]);
    }
    if let Some(Value::Array(carried)) = carried(&object, CURRENT_METRICS) {
        // The annotation contains more than the field.
        current = carried.iter().map(|metric| metrics::from_v1(metric, Side::Current)).collect();
    }
    object.set_at("status.currentMetrics", current);
    if let Some(Value::Array(conditions)) = carried(&object, CONDITIONS)
        && !conditions.is_empty()
    {
        object.set_at("status.conditions", conditions);
    }
    if object.int_at("status.currentReplicas") == Some(0) {
        object.remove_at("status.currentReplicas");
    }
    object.default_at("status.desiredReplicas", 0);
    drop_carried(&mut object);
    object
}

fn is_cpu(metric: &Value) -> bool {
    metric.str_at("type") == "Resource" && metric.str_at("resource.name") == "cpu"
}

/// The parsed value of an annotation, if valid.
fn carried(object: &Value, annotation: &str) -> Option<Value> {
    let text = object.map_at("metadata.annotations").get(annotation)?.as_str()?;
    serde_json::from_str(text).ok()
}

fn drop_carried(object: &mut Value) {
    let Some(annotations) = object.at_mut("metadata.annotations").and_then(Value::as_object_mut) else {
        return;
    };
    let before = annotations.len();
    annotations.retain(|name, _| ![METRICS, CURRENT_METRICS, CONDITIONS, BEHAVIOR].contains(&name.as_str()));
    if annotations.is_empty() && before > 0 {
        object.remove_at("metadata.annotations");
    }
}

fn condition_text(condition: &Value) -> String {
    Ordered::new()
        .member("type", condition.at("type"))
        .member("status", condition.at("status"))
        .member("lastTransitionTime", condition.at("lastTransitionTime"))
        .optional("reason", condition.at("reason"))
        .optional("message", condition.at("message"))
        .finish()
}

fn behavior_text(behavior: &Value) -> String {
    let policy = |policy: &Value| {
        Ordered::new()
            .member("Type", policy.at("type"))
            .member("Value", policy.at("value"))
            .member("PeriodSeconds", policy.at("periodSeconds"))
            .finish()
    };
    let rules = |rules: &Value| {
        if rules.is_null() {
            return "null".to_owned();
        }
        Ordered::new()
            .member("StabilizationWindowSeconds", rules.at("stabilizationWindowSeconds"))
            .member("SelectPolicy", rules.at("selectPolicy"))
            .text("Policies", &Ordered::list(rules.at("policies"), policy))
            .member("Tolerance", rules.at("tolerance"))
            .finish()
    };
    Ordered::new()
        .text("ScaleUp", &rules(behavior.at("scaleUp")))
        .text("ScaleDown", &rules(behavior.at("scaleDown")))
        .finish()
}

/// Parses the output of [`behavior_text`]. Like Go, ignores the case of field names.
fn behavior_from(text: &Value) -> Option<Value> {
    let mut behavior = Map::new();
    for name in ["scaleUp", "scaleDown"] {
        let rules = member(text, name);
        if rules.is_null() {
            continue;
        }
        let mut read = copied(rules, &["stabilizationWindowSeconds", "selectPolicy", "tolerance"]);
        if let Some(policies) = member(rules, "policies").as_array() {
            let policies =
                policies.iter().map(|policy| copied(policy, &["type", "value", "periodSeconds"]).into());
            read.insert("policies".to_owned(), policies.collect::<Vec<Value>>().into());
        }
        behavior.insert(name.to_owned(), read.into());
    }
    (!behavior.is_empty()).then_some(behavior.into())
}

fn member<'a>(object: &'a Value, name: &str) -> &'a Value {
    let mut members = object.as_object().into_iter().flatten();
    members.find(|(key, _)| key.eq_ignore_ascii_case(name)).map_or(&Value::Null, |(_, value)| value)
}

fn copied(object: &Value, names: &[&str]) -> Map<String, Value> {
    let members = names.iter().map(|name| ((*name).to_owned(), member(object, name).clone()));
    members.filter(|(_, value)| !value.is_null()).collect()
}

#[cfg(test)]
mod tests;
