//! Preserves schemars validators on fields whose type is a reference.
//!
//! `#[schemars(length(max = 3))]` has no effect on a reference. It works if schemars inlines all types, but then the type
//! names are lost. So both schemas are generated, and the validators are copied from the inlined one.

use serde_json::Value;

const VALIDATORS: [&str; 7] =
    ["minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum", "pattern"];

/// Copies validators from the inlined schema to the CRD schema of the same type.
pub(super) fn copy(from: &Value, to: &mut Value) {
    let Value::Object(to) = to else { return };
    for key in VALIDATORS {
        // A validator on the field takes precedence over one on its type.
        if let Some(value) = find(from, key) {
            to.insert(key.to_owned(), value.clone());
        }
    }
    if let Some(Value::Object(fields)) = to.get_mut("properties") {
        for (name, to) in fields {
            if let Some(from) = field(from, name) {
                copy(from, to);
            }
        }
    }
    for key in ["items", "additionalProperties"] {
        if let (Some(from), Some(to)) = (find(from, key), to.get_mut(key)) {
            copy(from, to);
        }
    }
}

/// The value of a keyword in a schema, or in its only non-null alternative.
fn find<'a>(schema: &'a Value, key: &str) -> Option<&'a Value> {
    schema.get(key).or_else(|| {
        let mut choices =
            choices(schema).filter(|choice| choice.get("type").is_none_or(|kind| kind != "null"));
        let only = choices.next()?;
        if choices.next().is_none() { find(only, key) } else { None }
    })
}

/// A field of a struct or of an enum variant.
fn field<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    let own = schema.get("properties").and_then(|fields| fields.get(name));
    own.or_else(|| choices(schema).find_map(|choice| field(choice, name)))
}

fn choices(schema: &Value) -> impl Iterator<Item = &Value> {
    let of = |key: &str| schema.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    of("allOf").iter().chain(of("oneOf")).chain(of("anyOf"))
}
