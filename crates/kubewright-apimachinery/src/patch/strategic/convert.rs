//! Errors of Go's map-to-struct converter, which decodes the result of a strategic merge patch.
//!
//! Its messages differ from those of the JSON decoder. Types with their own decoder (quantities, times) are
//! not checked here.

use serde_json::Value;

use crate::types::{FieldType, Type};

/// The converter's error for an object that does not match its type.
pub fn conversion_error(ty: &'static Type, value: &Value) -> Option<String> {
    if value.is_null() {
        return None;
    }
    let Some(object) = value.as_object() else {
        return Some(format!("cannot restore struct from: {}", kind(value)));
    };
    let mut fields = ty.fields.iter().filter_map(|field| Some((field, object.get(field.name)?)));
    fields.find_map(|(field, value)| field_error(&field.ty, value))
}

fn field_error(ty: &FieldType, value: &Value) -> Option<String> {
    let go = match ty {
        _ if value.is_null() => return None,
        FieldType::Object(ty) => return conversion_error(ty.get(), value),
        FieldType::List(item) => {
            let Some(items) = value.as_array() else {
                return Some(format!("cannot restore slice from {}", kind(value)));
            };
            return items.iter().find_map(|value| field_error(item, value));
        }
        FieldType::Map(item) => {
            let Some(entries) = value.as_object() else {
                return Some(format!("cannot restore map from {}", kind(value)));
            };
            return entries.values().find_map(|value| field_error(item, value));
        }
        FieldType::Bytes if !value.is_string() => {
            return Some(format!("cannot restore slice from {}", kind(value)));
        }
        FieldType::String if !value.is_string() => "string",
        FieldType::Bool if !value.is_boolean() => "bool",
        FieldType::Int32 if !is_whole(value) => "int32",
        FieldType::Int64 if !is_whole(value) => "int64",
        FieldType::Number if !value.is_number() => "float64",
        _ => return None,
    };
    // Go can convert integers to strings and between number types; the converter rejects both with another
    // message.
    let convertible = match go {
        "string" => kind(value) == "int64",
        "int32" | "int64" => value.is_number(),
        _ => false,
    };
    Some(if convertible {
        format!("cannot convert {} to {go}", kind(value))
    } else {
        format!("unrecognized type: {go}")
    })
}

fn is_whole(value: &Value) -> bool {
    value.is_i64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
}

/// The Go kind of a decoded value.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "invalid",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::types;

    #[test]
    fn type_errors_have_the_converters_text() {
        let ty = types::find("apps.v1.Deployment").unwrap().get();
        for (object, error) in [
            (json!({"spec": "x"}), "cannot restore struct from: string"),
            (json!({"spec": {"replicas": "x"}}), "unrecognized type: int32"),
            (json!({"spec": {"replicas": 1.5}}), "cannot convert float64 to int32"),
            (json!({"metadata": {"name": 1}}), "cannot convert int64 to string"),
            (json!({"metadata": {"labels": []}}), "cannot restore map from slice"),
            (json!({"spec": {"template": {"spec": {"containers": {}}}}}), "cannot restore slice from map"),
            (json!({"spec": {"paused": 1}}), "unrecognized type: bool"),
        ] {
            assert_eq!(conversion_error(ty, &object).as_deref(), Some(error), "{object}");
        }
        assert_eq!(conversion_error(ty, &json!({"spec": {"replicas": 2.0, "template": null}})), None);
    }
}
