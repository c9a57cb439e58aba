//! The type names of constructed objects.
//!
//! Expressions may give a field an object of any type, because the types of a mutation are not declared. The
//! result is checked instead: the type name of an object must be the path of the field that holds it.

use kubewright_apimachinery::field::quote;

use super::{Map, Value};
use crate::env::JSON_PATCH;

impl Value<'_> {
    /// Checks the result of a mutation expression, an object or a list of JSON patch operations: objects must
    /// have type names that match their fields. The error has upstream's wording.
    pub fn check_type_names(&self) -> Result<(), String> {
        match self {
            Value::List(operations) => operations.created().iter().try_for_each(Self::check_type_names),
            Value::Map(map) if map.type_name() == Some(JSON_PATCH) => {
                map.created().iter().try_for_each(|(_, value)| match value {
                    Value::Map(object) => check_object(object),
                    _ => Ok(()),
                })
            }
            Value::Map(object) => check_object(object),
            _ => Ok(()),
        }
    }
}

fn check_object(object: &Map<'_>) -> Result<(), String> {
    let mut errors = Vec::new();
    if let Some(name) = object.type_name() {
        check_map(object, name, &mut errors);
    }
    if errors.is_empty() { Ok(()) } else { Err(errors.join("\n")) }
}

fn check(value: &Value<'_>, path: &str, errors: &mut Vec<String>) {
    match value {
        Value::List(list) => list.created().iter().for_each(|item| check(item, path, errors)),
        Value::Map(map) => check_map(map, path, errors),
        _ => {}
    }
}

/// `path` is the type name that an object must have here. Items of lists and values of maps have the path of
/// their list or map.
fn check_map(map: &Map<'_>, path: &str, errors: &mut Vec<String>) {
    let name = map.type_name();
    if let Some(name) = name.filter(|name| *name != path) {
        errors.push(format!(
            "unexpected type name {}, expected {}, which matches field name path from root Object type",
            quote(name),
            quote(path)
        ));
    }
    for (key, value) in map.created() {
        match (key, name) {
            (Value::String(field), Some(_)) => check(value, &format!("{path}.{field}"), errors),
            _ => check(value, path, errors),
        }
    }
}
