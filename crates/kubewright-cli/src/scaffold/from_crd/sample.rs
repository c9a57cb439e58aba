//! Creates a sample object that matches a schema, as far as possible without knowing its meaning.

use kubewright_apiextensions::Structural;
use kubewright_apiextensions::custom::{self, CrdValidation};
use serde_json::{Map, Value, json};

/// Candidates for patterns.
const TEXTS: &[&str] = &[
    "example",
    "a",
    "A",
    "1",
    "1h",
    "10Gi",
    "v1",
    "example.com",
    "Example",
    "*/5 * * * *",
    "127.0.0.1",
    "10.0.0.0/8",
    "https://example.com",
    "#ffffff",
    "2024-02-29",
    "2024-02-29T12:00:00Z",
    "example:latest",
    "00000000-0000-4000-8000-000000000000",
    "user@example.com",
];

/// The required fields, with valid values.
pub(super) fn value(schema: &Value) -> Value {
    if let Some(default) = schema.get("default") {
        return default.clone();
    }
    if let Some(first) = schema.get("enum").and_then(|values| values.get(0)) {
        return first.clone();
    }
    let number = |key: &str| schema.get(key).and_then(Value::as_i64);
    match schema.get("type").and_then(Value::as_str) {
        Some("string") => text(schema).into(),
        Some("boolean") => true.into(),
        Some("integer" | "number") => {
            let past = |key: &str| i64::from(schema.get(key) == Some(&Value::Bool(true)));
            let least = number("minimum").map(|least| least + past("exclusiveMinimum"));
            let most = number("maximum").map(|most| most - past("exclusiveMaximum"));
            let unit = number("multipleOf").unwrap_or(1);
            json!(unit.max(least.unwrap_or(i64::MIN)).min(most.unwrap_or(i64::MAX)))
        }
        Some("array") => {
            let items = usize::try_from(number("minItems").unwrap_or(0)).unwrap_or_default();
            let item = schema.get("items").map(value).unwrap_or_default();
            vec![item; items].into()
        }
        Some("object") => object(schema),
        _ if schema.get("x-kubernetes-int-or-string").is_some() => "1".into(),
        _ => json!({}),
    }
}

fn object(schema: &Value) -> Value {
    let mut made = Map::new();
    for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
        let Some(name) = name.as_str() else { continue };
        made.insert(name.to_owned(), schema["properties"].get(name).map(value).unwrap_or_default());
    }
    let least = schema.get("minProperties").and_then(Value::as_u64).unwrap_or(0);
    match (schema.get("additionalProperties"), schema.get("properties").and_then(Value::as_object)) {
        (Some(values), _) => {
            for at in 1..=least {
                let name = if at == 1 { "example".to_owned() } else { format!("example-{at}") };
                made.insert(name, value(values));
            }
        }
        (None, Some(fields)) => {
            for (name, field) in fields {
                if (made.len() as u64) < least && !made.contains_key(name) {
                    made.insert(name.clone(), value(field));
                }
            }
        }
        _ => {}
    }
    made.into()
}

fn text(schema: &Value) -> String {
    let compiled = Structural::parse(schema).ok();
    let takes = |text: &str| {
        compiled.as_ref().is_none_or(|schema| custom::validate(schema, &Value::from(text)).is_empty())
    };
    let length =
        |key: &str| schema.get(key).and_then(Value::as_u64).and_then(|length| usize::try_from(length).ok());
    let found = TEXTS.iter().find(|text| takes(text)).map(|text| (*text).to_owned());
    found.unwrap_or_else(|| "x".repeat(length("minLength").unwrap_or(1).min(1_000)))
}

/// Whether the API server accepts the object. CEL rules are not evaluated.
pub(super) fn is_taken(definition: &Value, object: &Value) -> bool {
    let Ok(compiled) = CrdValidation::compile(definition) else { return false };
    let Some((_, version)) = compiled.versions.first_key_value() else { return false };
    let mut object = object.clone();
    custom::apply_defaults(&version.schema, &mut object);
    custom::validate(&version.schema, &object).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn required_fields_have_valid_values() {
        let schema = json!({
            "type": "object",
            "required": ["schedule", "replicas", "policy", "pages", "port", "steps"],
            "properties": {
                "schedule": { "type": "string", "pattern": "^[0-9]+h$" },
                "replicas": { "type": "integer", "minimum": 3 },
                "policy": { "type": "string", "enum": ["Allow", "Forbid"] },
                "pages": { "type": "object", "minProperties": 1, "additionalProperties": { "type": "string" } },
                "port": { "x-kubernetes-int-or-string": true },
                "steps": { "type": "array", "minItems": 1, "items": { "type": "object" } },
                "other": { "type": "string" },
            },
        });
        let made = value(&schema);
        assert_eq!(
            made,
            json!({
                "schedule": "1h", "replicas": 3, "policy": "Allow", "pages": { "example": "example" },
                "port": "1", "steps": [{}],
            })
        );
        let compiled = Structural::parse(&schema).unwrap();
        assert!(custom::validate(&compiled, &made).is_empty());
    }
}
