//! Validators of schemars' own, on fields whose type has a schema of its own.
//!
//! `#[schemars(length(max = 3))]` looks at the type of the schema before it, and does nothing at a reference. schemars
//! makes no references when it is asked to write every type out; but then nobody can tell which types they were. So
//! both are made, and the validators are carried from the one to the other.

use serde_json::Value;

const VALIDATORS: [&str; 7] =
    ["minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum", "pattern"];

/// Carries validators from a schema to another one of the same type.
pub(super) fn validators(from: &Value, to: &mut Value) {
    let (Value::Object(from), Value::Object(to)) = (from, to) else { return };
    for key in VALIDATORS {
        // The one that stands at the field wins over the one that its type has.
        if let Some(value) = from.get(key) {
            to.insert(key.to_owned(), value.clone());
        }
    }
    if let (Some(Value::Object(from)), Some(Value::Object(to))) =
        (from.get("properties"), to.get_mut("properties"))
    {
        for (name, to) in to {
            if let Some(from) = from.get(name) {
                validators(from, to);
            }
        }
    }
    for key in ["items", "additionalProperties"] {
        if let (Some(from), Some(to)) = (from.get(key), to.get_mut(key)) {
            validators(from, to);
        }
    }
}
