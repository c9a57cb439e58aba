//! Limits the length of descriptions.

use serde_json::Value;

/// Truncates all descriptions in the schemas of a CRD to `most` bytes, preferably at the end of a sentence. 0
/// removes them. Like controller-gen's `maxDescLen`.
pub fn limit_descriptions(definition: &mut Value, most: usize) {
    let versions = definition.pointer_mut("/spec/versions").and_then(Value::as_array_mut);
    for version in versions.into_iter().flatten() {
        if let Some(schema) = version.pointer_mut("/schema/openAPIV3Schema") {
            limit(schema, most);
        }
    }
}

fn limit(schema: &mut Value, most: usize) {
    let Value::Object(map) = schema else { return };
    match map.get_mut("description") {
        Some(_) if most == 0 => _ = map.remove("description"),
        Some(Value::String(text)) => shorten(text, most),
        _ => {}
    }
    for (key, value) in map {
        match (key.as_str(), value) {
            ("properties", Value::Object(fields)) => fields.values_mut().for_each(|field| limit(field, most)),
            ("items" | "additionalProperties", inner) => limit(inner, most),
            _ => {}
        }
    }
}

fn shorten(text: &mut String, most: usize) {
    if text.len() <= most {
        return;
    }
    text.truncate(text.floor_char_boundary(most));
    if let Some(end) = text.rfind(['.', '!', '?']).filter(|end| *end > 0) {
        text.truncate(end + 1);
    }
}
