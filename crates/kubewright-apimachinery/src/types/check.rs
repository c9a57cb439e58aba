//! Compares JSON with a built-in type: unknown fields, wrong types, invalid enum values.
//!
//! For clients that build objects. API servers use `decode` instead, with Go's messages and leniency: it
//! drops unknown fields unless the client asks for strict validation. Null counts as absent.

use std::fmt;

use serde_json::Value;

use super::{Field, FieldType, Type};
use crate::nearest::nearest;

/// A value that does not match its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// The path, such as `spec.template.spec.containers[0].imagePullPolicy`.
    pub path: String,
    /// The problem, as a sentence.
    pub problem: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() { "the object" } else { &self.path };
        write!(f, "{path}: {}", self.problem)
    }
}

/// All mismatches of a value, in key order.
pub fn mismatches(ty: &'static Type, value: &Value) -> Vec<Mismatch> {
    let mut found = Found::default();
    found.object(ty, value);
    found.mismatches
}

#[derive(Default)]
struct Found {
    path: String,
    mismatches: Vec<Mismatch>,
}

impl Found {
    fn object(&mut self, ty: &'static Type, value: &Value) {
        if ty.any || value.is_null() {
            return;
        }
        let Value::Object(members) = value else {
            return self.wrong(format!("is {}, not an object ({})", form(value), short(ty)));
        };
        for (name, value) in members {
            let before = self.enter(&format!(".{name}"));
            match ty.field(name) {
                Some(field) => self.value(field, &field.ty, value),
                None => self.wrong(unknown(ty, name)),
            }
            self.path.truncate(before);
        }
    }

    fn value(&mut self, field: &'static Field, ty: &'static FieldType, value: &Value) {
        match (ty, value) {
            (_, Value::Null) | (FieldType::FieldsV1 | FieldType::Raw | FieldType::Json, _) => {}
            (FieldType::Object(of), _) => self.object(of.get(), value),
            (FieldType::List(of), Value::Array(items)) => {
                for (index, item) in items.iter().enumerate() {
                    let before = self.enter(&format!("[{index}]"));
                    self.value(field, of, item);
                    self.path.truncate(before);
                }
            }
            (FieldType::Map(of), Value::Object(entries)) => {
                for (key, entry) in entries {
                    let before = self.enter(&format!(".{key}"));
                    self.value(field, of, entry);
                    self.path.truncate(before);
                }
            }
            (FieldType::String, Value::String(text)) => {
                let values = &field.enum_values;
                if !values.is_empty() && !text.is_empty() && !values.contains(&text.as_str()) {
                    self.wrong(no_such_value(text, values));
                }
            }
            (ty, value) if fits(ty, value) => {}
            (ty, value) => self.wrong(format!("is {}, not {}", form(value), described(ty))),
        }
    }

    /// Appends a step to the path. Returns the previous length, to truncate the path to afterwards.
    fn enter(&mut self, step: &str) -> usize {
        let before = self.path.len();
        self.path.push_str(if before == 0 { step.trim_start_matches('.') } else { step });
        before
    }

    fn wrong(&mut self, problem: String) {
        self.mismatches.push(Mismatch { path: self.path.clone(), problem });
    }
}

fn fits(ty: &FieldType, value: &Value) -> bool {
    match ty {
        FieldType::Bool => value.is_boolean(),
        FieldType::Int32 => is_int32(value),
        FieldType::Int64 => value.is_i64(),
        FieldType::Number => value.is_number(),
        FieldType::Quantity => value.is_string() || value.is_number(),
        FieldType::IntOrString => value.is_string() || is_int32(value),
        FieldType::Bytes | FieldType::Time | FieldType::MicroTime => value.is_string(),
        _ => false,
    }
}

fn is_int32(value: &Value) -> bool {
    value.as_i64().is_some_and(|number| i32::try_from(number).is_ok())
}

fn unknown(ty: &Type, name: &str) -> String {
    let near = nearest(name, ty.fields.iter().map(|field| field.name));
    let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    format!("unknown field of {}{near}", short(ty))
}

fn no_such_value(text: &str, values: &[&'static str]) -> String {
    match nearest(text, values.iter().copied()) {
        Some(near) => format!("unknown value {text:?}; did you mean {near:?}?"),
        None => format!("unknown value {text:?}; valid values are {}", values.join(", ")),
    }
}

fn short(ty: &Type) -> &'static str {
    ty.name.rsplit('.').next().unwrap_or_default()
}

fn described(ty: &FieldType) -> &'static str {
    match ty {
        FieldType::String => "a string",
        FieldType::Bool => "a boolean",
        FieldType::Int32 => "a 32-bit integer",
        FieldType::Int64 => "a 64-bit integer",
        FieldType::Number => "a number",
        FieldType::Bytes => "base64 in a string",
        FieldType::Quantity => "a quantity",
        FieldType::IntOrString => "a 32-bit integer or a string",
        FieldType::Time | FieldType::MicroTime => "a time in a string",
        FieldType::List(_) => "a list",
        FieldType::Map(_) => "a map",
        FieldType::Object(_) | FieldType::FieldsV1 | FieldType::Raw | FieldType::Json => "an object",
    }
}

fn form(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_f64() => "a number with a fraction",
        Value::Number(_) => "an integer",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::types::type_named;

    fn found(ty: &str, value: &Value) -> Vec<String> {
        mismatches(type_named(ty).unwrap(), value).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn typos_are_found_at_every_depth_with_a_suggestion() {
        let deployment = json!({
            "metadata": { "name": "web", "lables": {} },
            "spec": { "replica": 2, "template": { "spec": { "containers": [
                { "name": "a" },
                { "name": "b", "imagePullPolicy": "Allways", "resources": { "limits": { "cpu": 1, "memory": true } } },
            ] } } },
            "zzz": 1,
        });
        assert_eq!(
            found("apps.v1.Deployment", &deployment),
            [
                "metadata.lables: unknown field of ObjectMeta; did you mean `labels`?",
                "spec.replica: unknown field of DeploymentSpec; did you mean `replicas`?",
                "spec.template.spec.containers[1].imagePullPolicy: unknown value \"Allways\"; did you mean \"Always\"?",
                "spec.template.spec.containers[1].resources.limits.memory: is a boolean, not a quantity",
                "zzz: unknown field of Deployment",
            ]
        );
    }

    #[test]
    fn every_type_accepts_its_own_form_and_null() {
        let service = json!({
            "metadata": { "name": null, "generation": 3, "labels": { "a": "b" }, "finalizers": ["x"] },
            "spec": {
                "type": "ClusterIP",
                "publishNotReadyAddresses": true,
                "ports": [{ "port": 80, "targetPort": "http" }, { "port": 81, "targetPort": 8080 }],
            },
        });
        assert_eq!(found("core.v1.Service", &service), [""; 0]);
        let wrong = json!({
            "metadata": { "labels": { "a": 1 }, "finalizers": "x" },
            "spec": { "ports": [{ "port": 3_000_000_000_i64, "targetPort": 1.5 }], "selector": [] },
        });
        assert_eq!(
            found("core.v1.Service", &wrong),
            [
                "metadata.finalizers: is a string, not a list",
                "metadata.labels.a: is an integer, not a string",
                "spec.ports[0].port: is an integer, not a 32-bit integer",
                "spec.ports[0].targetPort: is a number with a fraction, not a 32-bit integer or a string",
                "spec.selector: is a list, not a map",
            ]
        );
        assert_eq!(found("core.v1.Service", &json!([])), ["the object: is a list, not an object (Service)"]);
    }

    #[test]
    fn fields_of_any_json_are_not_compared() {
        let schema = json!({ "default": { "anything": [1, null] }, "items": { "whatever": 1 } });
        assert_eq!(found("apiextensions.v1.JSONSchemaProps", &schema), [""; 0]);
    }
}
