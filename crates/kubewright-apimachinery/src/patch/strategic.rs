//! Strategic merge patches: JSON merge patches that merge lists by merge keys.
//!
//! Implements the directives `$patch`, `$retainKeys`, `$setElementOrder/NAME` and
//! `$deleteFromPrimitiveList/NAME`. The patch strategy of a field comes from
//! [`Field::patch`](crate::types::Field::patch). The result is not decoded: unknown fields, and directives
//! inside added list elements, are still in it, and decoding reports them. Custom resources do not support
//! strategic merge patches.

mod convert;
mod error;
mod list;
mod order;
mod print;
mod schema;

use serde_json::{Map, Value};

use crate::types::Type;
pub use convert::conversion_error;
pub use error::StrategicPatchError;
pub use print::go_text;
use schema::Schema;

type Result<T> = std::result::Result<T, StrategicPatchError>;

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const SET_ELEMENT_ORDER: &str = "$setElementOrder";
const DELETE_FROM_PRIMITIVE_LIST: &str = "$deleteFromPrimitiveList";

/// Applies a strategic merge patch to the object `doc` of type `ty`.
pub fn apply_strategic_merge_patch(ty: &'static Type, doc: &Value, patch: &Value) -> Result<Value> {
    let original = object(doc)?;
    let patch = object(patch)?;
    merge_objects(original, patch, Schema::of(ty)).map(Value::Object)
}

/// Go decodes both to maps, and `null` to an empty map.
fn object(value: &Value) -> Result<Map<String, Value>> {
    match value {
        Value::Null => Ok(Map::new()),
        Value::Object(object) => Ok(object.clone()),
        other => Err(StrategicPatchError::NotAnObject(match other {
            Value::Array(_) => "array",
            Value::String(_) => "string",
            Value::Number(_) => "number",
            _ => "bool",
        })),
    }
}

fn merge_objects(
    mut original: Map<String, Value>,
    mut patch: Map<String, Value>,
    schema: Schema,
) -> Result<Map<String, Value>> {
    if let Some(directive) = patch.get(PATCH) {
        return match directive.as_str() {
            Some("replace") => {
                patch.remove(PATCH);
                Ok(patch)
            }
            Some("delete") => Ok(Map::new()),
            _ => Err(StrategicPatchError::unknown_directive(directive, &patch)),
        };
    }
    retain_keys(&mut original, &mut patch)?;
    // Lists with an explicit order are merged first and removed from the patch.
    let ordered: Vec<String> =
        patch.keys().filter(|key| key.starts_with(SET_ELEMENT_ORDER)).cloned().collect();
    for directive in ordered {
        list::merge_in_order(&mut original, &mut patch, &directive, schema)?;
    }
    for (key, value) in patch {
        if key.starts_with(DELETE_FROM_PRIMITIVE_LIST) {
            let name = target(&key, DELETE_FROM_PRIMITIVE_LIST)?;
            merge_member(&mut original, name, value, schema, true)?;
        } else {
            merge_member(&mut original, &key, value, schema, false)?;
        }
    }
    Ok(original)
}

/// Removes the fields of the original that `$retainKeys` does not list. The patch must not set other fields.
fn retain_keys(original: &mut Map<String, Value>, patch: &mut Map<String, Value>) -> Result<()> {
    let Some(retained) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let Value::Array(retained) = retained else { return Err(StrategicPatchError::RetainKeysFormat) };
    let is_retained = |key: &str| retained.iter().any(|name| name == key);
    let is_exempt =
        |key: &str| key.starts_with(DELETE_FROM_PRIMITIVE_LIST) || key.starts_with(SET_ELEMENT_ORDER);
    if patch.iter().any(|(key, value)| !value.is_null() && !is_exempt(key) && !is_retained(key)) {
        return Err(StrategicPatchError::RetainKeysFormat);
    }
    original.retain(|key, _| is_retained(key));
    Ok(())
}

/// Merges one field of the patch. `deletes`: the list contains values to delete.
fn merge_member(
    original: &mut Map<String, Value>,
    name: &str,
    patch: Value,
    schema: Schema,
    deletes: bool,
) -> Result<()> {
    if patch.is_null() {
        original.remove(name);
        return Ok(());
    }
    let merged = match (original.remove(name), patch) {
        (Some(Value::Object(old)), Value::Object(new)) => {
            let field = schema.member(name)?;
            Some(Value::Object(if field.replace { new } else { merge_objects(old, new, field.schema)? }))
        }
        (Some(Value::Array(old)), Value::Array(new)) => {
            let field = schema.list(name)?;
            let merges = field.merge || deletes;
            Some(Value::Array(if merges { list::merge(old, new, &field, deletes)? } else { new }))
        }
        (old, _) if deletes => old,
        (_, new) => without_directives(without_nulls(new)),
    };
    if let Some(merged) = merged {
        original.insert(name.to_owned(), merged);
    }
    Ok(())
}

/// Prepares a value that is new in the original. Drops objects with `$patch`, which have nothing to act on.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(object) if object.contains_key(PATCH) => None,
        Value::Object(object) => {
            let kept = object.into_iter().filter_map(|(key, value)| Some((key, without_directives(value)?)));
            Some(Value::Object(kept.collect()))
        }
        Value::Array(list) => Some(Value::Array(list.into_iter().filter_map(without_directives).collect())),
        other => Some(other),
    }
}

/// Drops nulls of a new value, except in lists.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(object) => {
            let kept = object.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(key, value)| (key, without_nulls(value))).collect())
        }
        Value::Array(list) => Value::Array(list.into_iter().map(without_nulls).collect()),
        other => other,
    }
}

/// The field of a directive such as `$setElementOrder/containers`.
fn target<'a>(key: &'a str, directive: &str) -> Result<&'a str> {
    match key.split_once('/') {
        Some((prefix, name)) if prefix == directive => Ok(name),
        _ if directive == SET_ELEMENT_ORDER => Err(StrategicPatchError::SetElementOrderFormat),
        _ => Err(StrategicPatchError::PrimitiveListFormat),
    }
}

#[cfg(test)]
mod tests;
