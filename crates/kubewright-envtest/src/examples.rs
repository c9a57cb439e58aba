//! Random objects of a type, generated from its schema, for property tests such as the round trips of conversions.
//!
//! The same type gives the same objects. They have the shape that the schema describes. A string matches the pattern
//! and length of its field if a built-in candidate, the default or the example does. CEL rules are not considered, so an API
//! server may reject the objects.

use kubewright_manifests::crd;
use kubewright_manifests::declare::Item;
use regex::Regex;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// How many objects are tried for each one that is wanted.
const ATTEMPTS: usize = 10;
/// How deep objects are; below that, optional fields are left out.
const DEPTH: usize = 8;
/// Texts for fields without a known format.
const TEXTS: [&str; 6] = ["", "a", "B-2", "10", "é", "two words"];

/// Random objects of a type: at most `count`, and fewer if some do not decode.
///
/// ```
/// use kube::CustomResource;
/// use schemars::JsonSchema;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(CustomResource, JsonSchema, Serialize, Deserialize, Clone, Debug)]
/// #[kube(group = "example.com", version = "v1", kind = "Order", namespaced)]
/// struct OrderSpec {
///     amount: u8,
///     comment: Option<String>,
/// }
///
/// let orders: Vec<Order> = kubewright_envtest::examples(20);
/// assert_eq!(orders.len(), 20);
/// assert!(orders.iter().any(|order| order.spec.comment.is_some()));
/// assert!(orders.iter().any(|order| order.spec.comment.is_none()));
/// ```
pub fn examples<K: kube::CustomResourceExt + JsonSchema + DeserializeOwned>(count: usize) -> Vec<K> {
    let definition = crd::kind::<K>(Item::default()).definition;
    let schema = definition.pointer("/spec/versions/0/schema/openAPIV3Schema").cloned().unwrap_or_default();
    let resource = K::api_resource();
    let mut random = fastrand::Rng::with_seed(1);
    let objects = (0..count * ATTEMPTS).filter_map(|number| {
        let mut object = object(&schema, DEPTH, &mut random);
        object.insert("apiVersion".to_owned(), resource.api_version.clone().into());
        object.insert("kind".to_owned(), resource.kind.clone().into());
        object.insert("metadata".to_owned(), json!({ "name": format!("example-{number}") }));
        serde_json::from_value(Value::Object(object)).ok()
    });
    objects.take(count).collect()
}

fn object(schema: &Value, depth: usize, random: &mut fastrand::Rng) -> Map<String, Value> {
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut fields = Map::new();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        if required.contains(&name.as_str()) || (depth > 0 && random.bool()) {
            fields.insert(name.clone(), value(property, depth.saturating_sub(1), random));
        }
    }
    if let Some(further) = schema.get("additionalProperties").filter(|further| further.is_object()) {
        for number in 0..random.usize(0..3) {
            fields.insert(format!("key-{number}"), value(further, depth.saturating_sub(1), random));
        }
    }
    fields
}

fn value(schema: &Value, depth: usize, random: &mut fastrand::Rng) -> Value {
    if let Some(values) = schema["enum"].as_array().filter(|values| !values.is_empty()) {
        return values[random.usize(0..values.len())].clone();
    }
    if schema["x-kubernetes-int-or-string"] == true {
        return if random.bool() { json!(random.u8(0..100)) } else { json!("10") };
    }
    match schema["type"].as_str() {
        Some("object") => Value::Object(object(schema, depth, random)),
        Some("array") => {
            let least = schema["minItems"].as_u64().and_then(|least| usize::try_from(least).ok());
            let count = least.unwrap_or(0).max(random.usize(0..3));
            (0..count).map(|_| value(&schema["items"], depth.saturating_sub(1), random)).collect()
        }
        Some("boolean") => random.bool().into(),
        Some("integer") => integer(schema, random).into(),
        Some("number") => json!(f64::from(random.i16(-100..100)) / 4.0),
        Some("string") => text(schema, random),
        _ => json!({}),
    }
}

fn integer(schema: &Value, random: &mut fastrand::Rng) -> i64 {
    let bound = |key: &str| schema[key].as_f64().filter(|bound| bound.abs() < 1e9);
    #[expect(clippy::cast_possible_truncation, reason = "the bounds are below 1e9")]
    let bound = |key: &str| bound(key).map(|bound| bound as i64);
    let least = bound("minimum").unwrap_or(0);
    let most = bound("maximum").unwrap_or(least + 100).max(least);
    random.i64(least..=most)
}

fn text(schema: &Value, random: &mut fastrand::Rng) -> Value {
    match schema["format"].as_str() {
        Some("date-time") => json!(format!("2024-02-29T12:00:{:02}Z", random.u8(0..60))),
        Some("date") => "2024-02-29".into(),
        Some("byte") => "AQID".into(),
        Some("duration") => "90s".into(),
        Some("uuid") => "00000000-0000-4000-8000-000000000000".into(),
        Some("ipv4" | "ip") => "127.0.0.1".into(),
        Some("uri" | "url") => "https://example.com".into(),
        _ => {
            let texts = texts(schema);
            texts[random.usize(0..texts.len())].into()
        }
    }
}

/// The candidate strings that satisfy the schema of the field; all candidates if none does.
fn texts(schema: &Value) -> Vec<&str> {
    let pattern = schema["pattern"].as_str().and_then(|pattern| Regex::new(pattern).ok());
    let (least, most) = (schema["minLength"].as_u64(), schema["maxLength"].as_u64());
    let is_accepted = |text: &&str| {
        let length = text.chars().count() as u64;
        least.is_none_or(|least| length >= least)
            && most.is_none_or(|most| length <= most)
            && pattern.as_ref().is_none_or(|pattern| pattern.is_match(text))
    };
    let of_the_field = [&schema["default"], &schema["example"]].into_iter().filter_map(Value::as_str);
    let accepted: Vec<&str> = TEXTS.into_iter().chain(of_the_field).filter(is_accepted).collect();
    if accepted.is_empty() { TEXTS.to_vec() } else { accepted }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_match_pattern_and_length() {
        assert_eq!(texts(&json!({})), TEXTS);
        assert_eq!(texts(&json!({ "pattern": r"^\S+$", "default": "*" })), ["a", "B-2", "10", "é", "*"]);
        assert_eq!(texts(&json!({ "minLength": 2, "maxLength": 3 })), ["B-2", "10"]);
        assert_eq!(texts(&json!({ "pattern": "^x-[0-9]$", "example": "x-1" })), ["x-1"]);
        assert_eq!(texts(&json!({ "pattern": "^x-[0-9]$" })), TEXTS);
    }
}
