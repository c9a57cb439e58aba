//! Validation of Events: lenient for the core group, strict for `events.k8s.io`.
//!
//! Both groups are views of the same stored object. Messages use the names of the internal type.

use serde_json::Value;

use crate::validation::required;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::meta;
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

const MAX_REPORTER: usize = 128;
const MAX_NOTE: usize = 1024;

pub(crate) fn create(strict: bool, object: &Value) -> ErrorList {
    let event = Event::new(strict, object);
    let mut errors = lenient(&event);
    if !event.strict {
        return errors;
    }
    errors.extend(series(&event));
    if !object.has("eventTime") {
        errors.push(FieldError::required(&Path::new("eventTime"), ""));
    }
    let kind = object.str_at("type");
    if !matches!(kind, "Normal" | "Warning") {
        errors.push(FieldError::invalid(&Path::new("type"), "", format!("has invalid value: {kind}")));
    }
    for name in ["firstTimestamp", "lastTimestamp", "count"] {
        if event.has(name) {
            errors.push(FieldError::invalid(&Path::new(name), "", "needs to be unset"));
        }
    }
    let source = event.at("source");
    if !source.str_at("component").is_empty() || !source.str_at("host").is_empty() {
        errors.push(FieldError::invalid(&Path::new("source"), "", "needs to be unset"));
    }
    errors
}

pub(crate) fn update(strict: bool, new: &Value, old: &Value) -> ErrorList {
    let (event, old) = (Event::new(strict, new), Event::new(strict, old));
    let mut errors = lenient(&event);
    if !event.strict {
        return errors;
    }
    if event.at("series") != old.at("series") {
        errors.extend(series(&event));
    }
    // Upstream checks the reason twice.
    let fixed = [
        "involvedObject",
        "reason",
        "message",
        "source",
        "firstTimestamp",
        "lastTimestamp",
        "count",
        "reason",
        "type",
        "eventTime",
        "action",
        "related",
        "reportingController",
        "reportingInstance",
    ];
    for name in fixed {
        if event.at(name) != old.at(name) {
            errors.push(FieldError::invalid_printed(
                &Path::new(name),
                printed(name, event.at(name)),
                meta::IMMUTABLE,
            ));
        }
    }
    errors
}

/// An Event of either group.
struct Event<'a> {
    strict: bool,
    object: &'a Value,
}

impl<'a> Event<'a> {
    fn new(strict: bool, object: &'a Value) -> Self {
        Self { strict, object }
    }

    /// The value of a field by its internal name.
    fn at(&self, name: &str) -> &'a Value {
        let name = match (self.strict, name) {
            (true, "involvedObject") => "regarding",
            (true, "message") => "note",
            (true, "source") => "deprecatedSource",
            (true, "firstTimestamp") => "deprecatedFirstTimestamp",
            (true, "lastTimestamp") => "deprecatedLastTimestamp",
            (true, "count") => "deprecatedCount",
            (false, "reportingController") => "reportingComponent",
            (_, name) => name,
        };
        self.object.at(name)
    }

    fn str(&self, name: &str) -> &'a str {
        self.at(name).as_str().unwrap_or_default()
    }

    fn has(&self, name: &str) -> bool {
        let value = self.at(name);
        !value.is_null() && value.as_i64() != Some(0)
    }
}

/// Validation of all Events. Those with an `eventTime` must be complete.
fn lenient(event: &Event<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let namespace = event.object.str_at("metadata.namespace");
    let involved = event.at("involvedObject").str_at("namespace");
    let complete = event.object.has("eventTime");
    let agree = match (complete, involved.is_empty()) {
        (false, true) => matches!(namespace, "" | "default"),
        (false, false) => namespace == involved,
        (true, true) => matches!(namespace, "default" | "kube-system"),
        (true, false) => true,
    };
    if !agree {
        let path = Path::new("involvedObject").child("namespace");
        errors.push(FieldError::invalid(&path, involved, "does not match event.namespace"));
    }
    if complete {
        let path = Path::new(if event.strict { "reportingController" } else { "reportingComponent" });
        let controller = event.str("reportingController");
        errors.extend(required(controller, &path));
        errors.extend(meta::invalid(&path, controller, names::label_key(controller)));
        for (name, max) in
            [("reportingInstance", MAX_REPORTER), ("action", MAX_REPORTER), ("reason", MAX_REPORTER)]
        {
            errors.extend(required(event.str(name), &Path::new(name)));
            errors.extend(too_long(event, name, max));
        }
        errors.extend(too_long(event, "message", MAX_NOTE));
    }
    errors.extend(meta::invalid(&Path::new("namespace"), namespace, names::dns1123_subdomain(namespace)));
    errors
}

fn too_long(event: &Event<'_>, name: &str, max: usize) -> Option<FieldError> {
    (event.str(name).len() > max)
        .then(|| FieldError::invalid(&Path::new(name), "", format!("can have at most {max} characters")))
}

fn series(event: &Event<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let series = event.at("series");
    if series.is_null() {
        return errors;
    }
    if series.int_at("count").unwrap_or_default() < 2 {
        errors.push(FieldError::invalid(&Path::new("series.count"), "", "should be at least 2"));
    }
    if !series.has("lastObservedTime") {
        errors.push(FieldError::required(&Path::new("series.lastObservedTime"), ""));
    }
    errors
}

/// Formats a value like Go's internal type.
fn printed(name: &str, value: &Value) -> String {
    let fields: &[(&str, &str)] = match name {
        "involvedObject" | "related" => &[
            ("Kind", "kind"),
            ("Namespace", "namespace"),
            ("Name", "name"),
            ("UID", "uid"),
            ("APIVersion", "apiVersion"),
            ("ResourceVersion", "resourceVersion"),
            ("FieldPath", "fieldPath"),
        ],
        "source" => &[("Component", "component"), ("Host", "host")],
        "count" => return value.as_i64().unwrap_or_default().to_string(),
        "firstTimestamp" | "lastTimestamp" | "eventTime" => return value.to_string(),
        _ => return kubewright_apimachinery::field::quote(value.as_str().unwrap_or_default()),
    };
    if value.is_null() && name == "related" {
        return "null".to_owned();
    }
    let fields: Vec<String> = fields
        .iter()
        .map(|(go, json)| format!("\"{go}\":{}", kubewright_apimachinery::json::quote(value.str_at(json))))
        .collect();
    format!("{{{}}}", fields.join(","))
}
