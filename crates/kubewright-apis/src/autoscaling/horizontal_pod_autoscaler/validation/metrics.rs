//! Validation of the metrics of HorizontalPodAutoscaler.

use serde_json::Value;

use super::{GroupRule, reference};
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::meta;
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

const TYPES: [&str; 5] = ["ContainerResource", "External", "Object", "Pods", "Resource"];

/// Metric types and their members, in validation order.
const SOURCES: [(&str, &str); 5] = [
    ("object", "Object"),
    ("external", "External"),
    ("pods", "Pods"),
    ("resource", "Resource"),
    ("containerResource", "ContainerResource"),
];

pub(super) fn validate(spec: &Value, described: GroupRule, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let metrics = spec.list_at("metrics");
    for (i, one) in metrics.iter().enumerate() {
        errors.extend(metric(one, described, &path.index(i)));
    }
    // With zero replicas, only metrics that do not depend on pods can trigger scaling.
    let elsewhere = |metric: &Value| ["Object", "External"].contains(&metric.str_at("type"));
    if spec.int_at("minReplicas") == Some(0) && !metrics.iter().any(elsewhere) {
        let detail =
            "must specify at least one Object or External metric to support scaling to zero replicas";
        errors.push(FieldError::forbidden(path, detail));
    }
    errors
}

fn metric(metric: &Value, described: GroupRule, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let kind = metric.str_at("type");
    let at = path.child("type");
    if kind.is_empty() {
        errors.push(FieldError::required(&at, "must specify a metric source type"));
    }
    let known = TYPES.contains(&kind);
    if !known {
        errors.push(FieldError::not_supported(&at, kind, &TYPES));
    }
    let present: Vec<&str> = SOURCES.iter().map(|(name, _)| *name).filter(|name| metric.has(name)).collect();
    if let Some(first) = present.first() {
        errors.extend(source(first, metric.at(first), described, &path.child(first)));
    }
    let expected = SOURCES.iter().find(|(_, source)| *source == kind).map(|(name, _)| *name);
    match expected {
        Some(expected) if !metric.has(expected) => {
            let detail = "must populate information for the given metric source";
            errors.push(FieldError::required(&path.child(expected), detail));
        }
        Some(_) => {}
        // Upstream reports this twice.
        None => errors.push(FieldError::not_supported(&at, kind, &TYPES)),
    }
    if present.len() > 1 {
        let others = present.iter().filter(|name| Some(**name) != expected);
        errors.extend(others.map(|name| {
            FieldError::forbidden(&path.child(name), "must populate the given metric source only")
        }));
    }
    errors
}

fn source(name: &str, source: &Value, described: GroupRule, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    match name {
        "object" => {
            errors.extend(reference(source.at("describedObject"), described, &path.child("describedObject")));
            errors.extend(identifier(source.at("metric"), &path.child("metric")));
        }
        "external" | "pods" => errors.extend(identifier(source.at("metric"), &path.child("metric"))),
        _ => errors.extend(resource(name, source, path)),
    }
    let (values, at) = (source.at("target"), path.child("target"));
    errors.extend(target(values, &at));
    let (value, average) = (values.has("value"), values.has("averageValue"));
    let utilization = values.has("averageUtilization");
    let missing = |member: &str, detail: &str| FieldError::required(&at.child(member), detail);
    match name {
        "object" if !value && !average => {
            errors.push(missing("averageValue", "must set either a target value or averageValue"));
        }
        "external" if !value && !average => {
            let detail = "must set either a target value for metric or a per-pod target";
            errors.push(missing("averageValue", detail));
        }
        "external" if value && average => {
            let detail = "may not set both a target value for metric and a per-pod target";
            errors.push(FieldError::forbidden(&at.child("value"), detail));
        }
        "pods" if !average => {
            errors.push(missing("averageValue", "must specify a positive target averageValue"));
        }
        "resource" | "containerResource" if !utilization && !average => {
            let detail = "must set either a target raw value or a target utilization";
            errors.push(missing("averageUtilization", detail));
        }
        "resource" | "containerResource" if utilization && average => {
            let detail = "may not set both a target raw value and a target utilization";
            errors.push(FieldError::forbidden(&at.child("averageValue"), detail));
        }
        _ => {}
    }
    errors
}

fn resource(name: &str, source: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let resource = source.str_at("name");
    let at = path.child("name");
    if resource.is_empty() {
        errors.push(FieldError::required(&at, "must specify a resource name"));
    } else if name == "containerResource" {
        errors.extend(container_resource(resource, &at));
    }
    if name == "containerResource" {
        let at = path.child("container");
        match source.str_at("container") {
            "" => errors.push(FieldError::required(&at, "must specify a container")),
            container => errors.extend(meta::invalid(&at, container, names::dns1123_label(container))),
        }
    }
    errors
}

/// Validates a resource name of containers.
fn container_resource(name: &str, path: &Path) -> ErrorList {
    let mut errors: ErrorList = meta::invalid(path, name, names::label_key(name)).collect();
    let standard = ["cpu", "memory", "ephemeral-storage"].contains(&name) || name.starts_with("hugepages-");
    if !name.contains('/') && !standard {
        errors.push(FieldError::invalid(path, name, "must be a standard resource for containers"));
    }
    errors
}

fn target(values: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let kind = values.str_at("type");
    let at = path.child("type");
    if kind.is_empty() {
        errors.push(FieldError::required(&at, "must specify a metric target type"));
    }
    if !["Utilization", "Value", "AverageValue"].contains(&kind) {
        errors.push(FieldError::invalid(&at, kind, "must be either Utilization, Value, or AverageValue"));
    }
    for name in ["value", "averageValue"] {
        // Quantities are in canonical form.
        if let Some(quantity) = values.at(name).as_str().filter(|q| *q == "0" || q.starts_with('-')) {
            errors.push(FieldError::invalid(&path.child(name), quantity, "must be positive"));
        }
    }
    if let Some(utilization @ ..1) = values.int_at("averageUtilization") {
        errors.push(FieldError::invalid(
            &path.child("averageUtilization"),
            utilization,
            "must be greater than 0",
        ));
    }
    errors
}

fn identifier(metric: &Value, path: &Path) -> ErrorList {
    let at = path.child("name");
    match metric.str_at("name") {
        "" => vec![FieldError::required(&at, "must specify a metric name")],
        name => meta::invalid(&at, name, names::path_segment_name(name)).collect(),
    }
}
