//! Conversion between JSON and CEL values, guided by a schema.
//!
//! Without a schema, JSON is converted as is. Data that does not match its schema yields an error; rules only
//! run on data that already passed schema validation, so users rarely see these errors.

use serde_json::Value as Json;

use super::error::EvalError;
use super::library::time;
use super::schema::Schema;
use super::value::{Evaluated, List, ListKind, Map, Value};
use kubewright_apimachinery::duration::parse_go_duration;

/// Converts `json` to a value.
pub(crate) fn value<'a>(json: &'a Json, schema: Option<&'a Schema>) -> Evaluated<'a> {
    match schema {
        Some(schema) => typed(json, schema),
        None => Ok(untyped(json)),
    }
}

/// Converts JSON without a schema.
pub(crate) fn untyped(json: &Json) -> Value<'_> {
    match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => match number.as_i64() {
            Some(whole) => Value::Int(whole),
            None => Value::Double(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::string(text.as_str()),
        Json::Array(items) => Value::List(List::data(items, None, ListKind::Plain)),
        Json::Object(entries) => Value::Map(Map::data(entries, None)),
    }
}

fn typed<'a>(json: &'a Json, schema: &'a Schema) -> Evaluated<'a> {
    if json.is_null() {
        return if schema.nullable {
            Ok(Value::Null)
        } else {
            Err(EvalError::new("invalid data, got null for schema with nullable=false"))
        };
    }
    if schema.int_or_string {
        return match json {
            Json::String(text) => Ok(Value::string(text.as_str())),
            Json::Number(number) if number.is_i64() => Ok(untyped(json)),
            _ => Err(EvalError::new(
                "invalid data, expected XIntOrString value to be either a string or integer",
            )),
        };
    }
    match (schema.type_name.as_str(), json) {
        ("object", Json::Object(entries)) => Ok(Value::Map(Map::data(entries, Some(schema)))),
        ("object", _) => {
            Err(EvalError::new("invalid data, expected a map for the provided schema with type=object"))
        }
        ("array", Json::Array(items)) => list(items, schema),
        ("array", _) => {
            Err(EvalError::new("invalid data, expected an array for the provided schema with type=array"))
        }
        ("string", Json::String(text)) => string(text, &schema.format),
        ("number", Json::Number(number)) => Ok(Value::Double(number.as_f64().unwrap_or(f64::NAN))),
        ("integer", Json::Number(number)) if number.is_i64() => Ok(untyped(json)),
        ("boolean", Json::Bool(value)) => Ok(Value::Bool(*value)),
        ("string", _) => Err(expected("string", json)),
        ("number", _) => Err(expected("float", json)),
        ("integer", _) => Err(expected("int", json)),
        ("boolean", _) => Err(expected("bool", json)),
        _ if schema.preserve_unknown_fields => Ok(Value::Unknown(json)),
        (other, _) => Err(EvalError::new(format!(
            "invalid type, expected object, array, number, integer, boolean or string, or no type with \
             x-kubernetes-int-or-string or x-kubernetes-preserve-unknown-fields is true, got {other}"
        ))),
    }
}

fn list<'a>(items: &'a [Json], schema: &'a Schema) -> Evaluated<'a> {
    let Some(item) = schema.items.as_deref() else {
        return Err(EvalError::new("invalid array type, expected Items with a non-empty Schema"));
    };
    let kind = match schema.list_type.as_deref() {
        Some("map") => ListKind::Map(&schema.list_map_keys),
        Some("set") => ListKind::Set,
        None | Some("" | "atomic") => ListKind::Atomic,
        Some(other) => {
            let problem = "invalid x-kubernetes-list-type, expected 'map', 'set' or 'atomic' but got";
            return Err(EvalError::new(format!("{problem} {other}")));
        }
    };
    Ok(Value::List(List::data(items, Some(item), kind)))
}

fn string<'a>(text: &'a str, format: &str) -> Evaluated<'a> {
    let invalid = |what: &str| EvalError::new(format!("Invalid {what} {text}"));
    match format {
        "duration" => parse_go_duration(text)
            .map(Value::Duration)
            .map_err(|error| EvalError::new(format!("Invalid duration {text}: {error}"))),
        "date" => {
            time::parse_date(text).map(Value::Timestamp).ok_or_else(|| invalid("date formatted string"))
        }
        "date-time" => time::parse_date_time(text)
            .map(Value::Timestamp)
            .ok_or_else(|| invalid("date-time formatted string")),
        "byte" => super::library::formats::decode_base64(text)
            .map(|bytes| Value::Bytes(bytes.into()))
            .ok_or_else(|| invalid("byte formatted string")),
        _ => Ok(Value::string(text)),
    }
}

fn expected(wanted: &str, json: &Json) -> EvalError {
    let found = match json {
        Json::Null => "<nil>",
        Json::Bool(_) => "bool",
        Json::Number(number) if number.is_i64() => "int64",
        Json::Number(_) => "float64",
        Json::String(_) => "string",
        Json::Array(_) => "[]interface {}",
        Json::Object(_) => "map[string]interface {}",
    };
    EvalError::new(format!("invalid data, expected {wanted}, got {found}"))
}

impl Value<'_> {
    /// Converts the value to JSON. Fails for values that JSON cannot represent.
    pub fn to_json(&self) -> Result<Json, EvalError> {
        Ok(match self {
            Self::Null => Json::Null,
            Self::Bool(value) => Json::Bool(*value),
            Self::Int(value) => Json::from(*value),
            Self::Uint(value) => Json::from(*value),
            Self::Double(value) => Json::from(*value),
            Self::String(text) => Json::String(text.clone().into_owned()),
            Self::Unknown(json) => (*json).clone(),
            Self::List(list) => {
                let items: Result<Vec<Json>, EvalError> =
                    list.iter().map(|item| item.and_then(|item| item.to_json())).collect();
                Json::Array(items?)
            }
            Self::Map(map) => {
                let mut fields = serde_json::Map::new();
                for key in map.keys() {
                    let value = map.find(&key)?.unwrap_or(Self::Null);
                    fields.insert(key.shown(), value.to_json()?);
                }
                Json::Object(fields)
            }
            other => {
                let Some(text) = super::library::convert::string_of(other) else {
                    let name = other.type_name();
                    return Err(EvalError::new(format!("a value of type {name} could not marshal to JSON")));
                };
                Json::String(text?.into_owned())
            }
        })
    }
}

impl<'a> From<&'a Json> for Value<'a> {
    fn from(json: &'a Json) -> Self {
        untyped(json)
    }
}
