//! Validators of schemars' own, on fields whose type has a schema of its own.
//!
//! `#[schemars(length(max = 3))]` looks at the type of the schema before it, and does nothing at a reference. schemars
//! makes no references when it is asked to write every type out; but then nobody can tell which types they were. So
//! both are made, and the validators are carried from the one to the other.

use serde_json::Value;

const VALIDATORS: [&str; 7] =
    ["minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum", "pattern"];

/// Carries validators from what schemars said to the definition's schema of the same type.
pub(super) fn validators(from: &Value, to: &mut Value) {
    let Value::Object(to) = to else { return };
    for key in VALIDATORS {
        // The one that stands at the field wins over the one that its type has.
        if let Some(value) = find(from, key) {
            to.insert(key.to_owned(), value.clone());
        }
    }
    if let Some(Value::Object(fields)) = to.get_mut("properties") {
        for (name, to) in fields {
            if let Some(from) = field(from, name) {
                validators(from, to);
            }
        }
    }
    for key in ["items", "additionalProperties"] {
        if let (Some(from), Some(to)) = (find(from, key), to.get_mut(key)) {
            validators(from, to);
        }
    }
}

/// What a schema says, or the only one beside null that it is a choice of.
fn find<'a>(schema: &'a Value, key: &str) -> Option<&'a Value> {
    schema.get(key).or_else(|| {
        let mut choices =
            choices(schema).filter(|choice| choice.get("type").is_none_or(|kind| kind != "null"));
        let only = choices.next()?;
        if choices.next().is_none() { find(only, key) } else { None }
    })
}

/// A field of a struct, or of a variant of an enum.
fn field<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    let own = schema.get("properties").and_then(|fields| fields.get(name));
    own.or_else(|| choices(schema).find_map(|choice| field(choice, name)))
}

fn choices(schema: &Value) -> impl Iterator<Item = &Value> {
    let of = |key: &str| schema.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    of("allOf").iter().chain(of("oneOf")).chain(of("anyOf"))
}
