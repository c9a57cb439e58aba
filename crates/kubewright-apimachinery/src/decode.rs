//! Decodes request bodies to objects of built-in types, in the form that Go would serialize.
//!
//! Upstream decodes into Go structs and encodes them again. That drops unknown fields and empty values
//! (except behind pointers), always writes some fields, and canonicalizes quantities and times. [`normalise`]
//! has the same effect on plain JSON. It is idempotent.

mod strict;

use serde_json::{Map, Value};

use crate::json::{self, ParseError, ParseOptions, Parsed};
use crate::quantity::Quantity;
use crate::time;
use crate::types::{Field, FieldType, Type};

/// A decoded object.
#[derive(Debug)]
pub struct Decoded {
    /// The normalised object.
    pub value: Value,
    /// Strict validation errors in document order: `unknown field "spec.x"`, `duplicate field "data.a"`.
    pub strict: Vec<String>,
}

/// Why a body is not a valid object of the type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The body is not valid JSON.
    #[error(transparent)]
    Syntax(#[from] ParseError),
    /// A value has the wrong type.
    #[error(transparent)]
    Type(#[from] TypeError),
}

/// A value has the wrong type. The text is Go's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TypeError(String);

/// Decodes `bytes` as an object of type `ty`.
pub fn decode(ty: &'static Type, bytes: &[u8]) -> Result<Decoded, DecodeError> {
    decode_parsed(ty, json::parse(bytes, ParseOptions::default())?, bytes)
}

/// Like [`decode`], for `bytes` that are already parsed.
pub fn decode_parsed(ty: &'static Type, parsed: Parsed, bytes: &[u8]) -> Result<Decoded, DecodeError> {
    let mut value = parsed.value;
    let completed = complete(ty, &mut value)?;
    let strict = if completed.unknown || !parsed.duplicates.is_empty() {
        strict::errors(ty, bytes)?
    } else {
        Vec::new()
    };
    Ok(Decoded { value, strict })
}

/// Strict validation errors of a value without source text: unknown fields, sorted by name.
pub fn unknown_fields(ty: &'static Type, value: &Value) -> Vec<String> {
    strict::unknown_of_value(ty, value)
}

/// The form of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The result of [`complete`]: may contain empty lists or maps.
    Complete,
    /// The result of [`normalise`].
    Normal,
}

/// The result of [`complete`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completed {
    /// Whether the object had unknown fields.
    pub unknown: bool,
    /// The form of the object.
    pub form: Form,
}

/// Converts an object to the form that Go would serialize.
pub fn normalise(ty: &'static Type, value: &mut Value) -> Result<(), TypeError> {
    Context::new(Collections::DropEmpty).run(ty, value).map(drop)
}

/// Like [`normalise`], but keeps empty lists and maps, as Go structs do: some validation rules distinguish
/// them from absent ones.
pub fn complete(ty: &'static Type, value: &mut Value) -> Result<Completed, TypeError> {
    Context::new(Collections::KeepEmpty).run(ty, value)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Collections {
    KeepEmpty,
    DropEmpty,
}

struct Context {
    collections: Collections,
    /// Names of the parent fields, as Go's errors list them.
    path: Vec<&'static str>,
    unknown: bool,
    form: Form,
}

impl Context {
    fn new(collections: Collections) -> Self {
        Self { collections, path: Vec::new(), unknown: false, form: Form::Normal }
    }

    fn run(mut self, ty: &'static Type, value: &mut Value) -> Result<Completed, TypeError> {
        self.object(ty.name, ty, value)?;
        Ok(Completed { unknown: self.unknown, form: self.form })
    }

    fn object(&mut self, owner: &str, ty: &'static Type, value: &mut Value) -> Result<(), TypeError> {
        if ty.any {
            return Ok(());
        }
        let Value::Object(map) = value else {
            return Err(self.error(owner, value, &go_name(ty)));
        };
        // Usually empty: most objects are already normalised.
        let mut left_out = Vec::new();
        for (name, value) in map.iter_mut() {
            let field = ty.field(name);
            self.unknown |= field.is_none();
            if !field.map_or(Ok(false), |field| self.field(ty, field, value))? {
                left_out.push(name.clone());
            }
        }
        for name in left_out {
            map.remove(&name);
        }
        for field in &ty.fields {
            if field.always && !map.contains_key(field.name) {
                map.insert(field.name.to_owned(), zero(field));
            }
        }
        Ok(())
    }

    /// Normalises the value of a field. Returns false if Go would omit it.
    fn field(
        &mut self,
        ty: &'static Type,
        field: &'static Field,
        value: &mut Value,
    ) -> Result<bool, TypeError> {
        if value.is_null() {
            // Fields that are always written get their zero value later.
            return Ok(false);
        }
        self.path.push(field.name);
        self.value(ty.name, &field.ty, value)?;
        self.path.pop();
        if matches!(field.ty, FieldType::List(_) | FieldType::Map(_)) && is_empty(&field.ty, value) {
            // Also dropped for fields that are always written: storage does not distinguish empty from
            // absent.
            let keep = self.collections == Collections::KeepEmpty;
            if keep {
                self.form = Form::Complete;
            }
            return Ok(keep);
        }
        Ok(field.always || field.pointer || !is_empty(&field.ty, value))
    }

    fn value(&mut self, owner: &str, ty: &'static FieldType, value: &mut Value) -> Result<(), TypeError> {
        match ty {
            FieldType::String => match value {
                Value::String(_) => Ok(()),
                other => Err(self.error(owner, other, "string")),
            },
            FieldType::Bool => match value {
                Value::Bool(_) => Ok(()),
                other => Err(self.error(owner, other, "bool")),
            },
            FieldType::Int32 => self.integer(owner, value, "int32", i32::try_from),
            FieldType::Int64 => self.integer(owner, value, "int64", Ok::<i64, std::convert::Infallible>),
            FieldType::Number => match value {
                Value::Number(_) => Ok(()),
                other => Err(self.error(owner, other, "float64")),
            },
            FieldType::Bytes => match value {
                Value::String(text) => check_base64(text),
                other => Err(self.error(owner, other, "[]uint8")),
            },
            FieldType::Quantity => quantity(value),
            FieldType::IntOrString => match value {
                Value::String(_) => Ok(()),
                other => self.integer(owner, other, "int32", i32::try_from),
            },
            FieldType::Time | FieldType::MicroTime => self.time(owner, ty, value),
            FieldType::FieldsV1 | FieldType::Raw | FieldType::Json => Ok(()),
            FieldType::List(of) => match value {
                Value::Array(items) => {
                    for item in items {
                        self.element(owner, of, item)?;
                    }
                    Ok(())
                }
                other => Err(self.error(owner, other, &go_type(ty))),
            },
            FieldType::Map(of) => match value {
                Value::Object(entries) => {
                    for (_, entry) in entries.iter_mut() {
                        self.element(owner, of, entry)?;
                    }
                    Ok(())
                }
                other => Err(self.error(owner, other, &go_type(ty))),
            },
            FieldType::Object(of) => self.object(owner, of.get(), value),
        }
    }

    /// Normalises an element of a list or map. Go decodes null to the zero value.
    fn element(&mut self, owner: &str, ty: &'static FieldType, value: &mut Value) -> Result<(), TypeError> {
        if value.is_null() {
            *value = zero_of(ty);
        }
        if value.is_null() { Ok(()) } else { self.value(owner, ty, value) }
    }

    fn integer<T, E>(
        &self,
        owner: &str,
        value: &Value,
        go: &str,
        fits: impl Fn(i64) -> Result<T, E>,
    ) -> Result<(), TypeError> {
        match value.as_i64() {
            Some(number) if fits(number).is_ok() => Ok(()),
            _ => Err(self.error(owner, value, go)),
        }
    }

    fn time(&self, owner: &str, ty: &FieldType, value: &mut Value) -> Result<(), TypeError> {
        let Value::String(text) = value else {
            return Err(self.error(owner, value, "string"));
        };
        let canonical = if matches!(ty, FieldType::MicroTime) {
            time::parse(text, time::Layout::Rfc3339Micro).map(time::format_rfc3339_micro)
        } else {
            time::parse(text, time::Layout::Rfc3339)
                .map(|micros| time::format_rfc3339(micros.div_euclid(1_000_000)))
        };
        let canonical = canonical.map_err(|error| TypeError(error.to_string()))?;
        if canonical != *text {
            *text = canonical;
        }
        Ok(())
    }

    fn error(&self, owner: &str, value: &Value, go: &str) -> TypeError {
        let what = match value {
            Value::Null => "null".to_owned(),
            Value::Bool(_) => "bool".to_owned(),
            // Go's message contains the number only if the target is numeric.
            Value::Number(number) if go.starts_with("int") || go.starts_with("float") => {
                format!("number {number}")
            }
            Value::Number(_) => "number".to_owned(),
            Value::String(_) => "string".to_owned(),
            Value::Array(_) => "array".to_owned(),
            Value::Object(_) => "object".to_owned(),
        };
        if self.path.is_empty() {
            return TypeError(format!("json: cannot unmarshal {what} into Go value of type {go}"));
        }
        let owner = owner.rsplit('.').next().unwrap_or_default();
        let path = self.path.join(".");
        TypeError(format!("json: cannot unmarshal {what} into Go struct field {owner}.{path} of type {go}"))
    }
}

fn quantity(value: &mut Value) -> Result<(), TypeError> {
    if value.as_str().is_some_and(is_canonical_quantity) {
        return Ok(());
    }
    let canonical = Quantity::from_json(value).map_err(|error| TypeError(error.to_string()))?.to_string();
    if value.as_str() != Some(&canonical) {
        *value = Value::String(canonical);
    }
    Ok(())
}

/// Fast check for a canonical quantity: an integer that no larger suffix can shorten. May return false for
/// other canonical quantities.
fn is_canonical_quantity(text: &str) -> bool {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, suffix) = text.split_at(digits);
    let step = match suffix {
        "" | "m" | "k" | "M" | "G" => 1000,
        "Ki" | "Mi" | "Gi" => 1024,
        _ => return false,
    };
    (1..=9).contains(&digits)
        && !number.starts_with('0')
        && number.parse::<u32>().is_ok_and(|number| number % step != 0)
}

/// Checks base64 like Go: standard alphabet with padding, line breaks are skipped.
fn check_base64(text: &mut String) -> Result<(), TypeError> {
    if text.contains(['\n', '\r']) {
        text.retain(|c| c != '\n' && c != '\r');
    }
    let bad = |at: usize| TypeError(format!("illegal base64 data at input byte {at}"));
    let bytes = text.as_bytes();
    let padding = bytes.iter().rev().take_while(|b| **b == b'=').count();
    let body = bytes.len() - padding;
    for (at, byte) in bytes[..body].iter().enumerate() {
        if !(byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/')) {
            return Err(bad(at));
        }
    }
    match (body % 4, padding) {
        (0, 0) | (2, 2) | (3, 1) => Ok(()),
        (0 | 1, _) => Err(bad(body)),
        _ => Err(bad(bytes.len())),
    }
}

/// Whether the value is empty in the sense of Go's `omitempty`, which never applies to structs.
fn is_empty(ty: &FieldType, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => !matches!(ty, FieldType::IntOrString) && number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty() && !matches!(ty, FieldType::IntOrString | FieldType::Quantity),
        Value::Array(items) => items.is_empty(),
        // Structs only get here if they have `omitzero`; an empty one is zero.
        Value::Object(map) => map.is_empty() && !matches!(ty, FieldType::Raw | FieldType::Json),
    }
}

fn zero(field: &'static Field) -> Value {
    // Bytes that are absent marshal to null, as Go's nil slices do.
    if field.pointer || matches!(field.ty, FieldType::Bytes) { Value::Null } else { zero_of(&field.ty) }
}

fn zero_of(ty: &'static FieldType) -> Value {
    match ty {
        FieldType::String | FieldType::Bytes => Value::String(String::new()),
        FieldType::Bool => Value::Bool(false),
        FieldType::Int32 | FieldType::Int64 | FieldType::Number | FieldType::IntOrString => Value::from(0),
        FieldType::Quantity => Value::String("0".to_owned()),
        FieldType::Time
        | FieldType::MicroTime
        | FieldType::FieldsV1
        | FieldType::Raw
        | FieldType::Json
        | FieldType::List(_)
        | FieldType::Map(_) => Value::Null,
        FieldType::Object(of) => {
            let mut map = Map::new();
            for field in of.get().fields.iter().filter(|field| field.always) {
                map.insert(field.name.to_owned(), zero(field));
            }
            Value::Object(map)
        }
    }
}

/// The type name in Go's errors.
fn go_type(ty: &FieldType) -> String {
    match ty {
        FieldType::String | FieldType::Time | FieldType::MicroTime | FieldType::Quantity => {
            "string".to_owned()
        }
        FieldType::Bool => "bool".to_owned(),
        FieldType::Int32 | FieldType::IntOrString => "int32".to_owned(),
        FieldType::Int64 => "int64".to_owned(),
        FieldType::Number => "float64".to_owned(),
        FieldType::Bytes => "[]uint8".to_owned(),
        FieldType::FieldsV1 | FieldType::Raw | FieldType::Json => "interface {}".to_owned(),
        FieldType::List(of) => format!("[]{}", go_type(of)),
        FieldType::Map(of) => format!("map[string]{}", go_type(of)),
        FieldType::Object(of) => go_name(of.get()),
    }
}

fn go_name(ty: &Type) -> String {
    let mut parts = ty.name.rsplit('.');
    let name = parts.next().unwrap_or_default();
    format!("{}.{name}", parts.next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::type_named;
    use serde_json::json;

    fn decoded(ty: &str, text: &str) -> Decoded {
        decode(type_named(ty).unwrap(), text.as_bytes()).unwrap()
    }

    #[test]
    fn empty_values_are_dropped_unless_the_field_is_a_pointer() {
        let ty = type_named("apps.v1.DeploymentSpec").unwrap();
        let text = r#"{"replicas":0,"minReadySeconds":0,"paused":false,"selector":null,"template":{"metadata":{"labels":{}}}}"#;
        let mut deployment = decode(ty, text.as_bytes()).unwrap().value;
        assert_eq!(
            deployment["template"]["metadata"],
            json!({"labels": {}}),
            "an empty map stays, a missing one is not added"
        );
        normalise(ty, &mut deployment).unwrap();
        assert_eq!(
            deployment,
            json!({"replicas": 0, "selector": null, "strategy": {}, "template": {"metadata": {}, "spec": {"containers": null}}})
        );
    }

    #[test]
    fn strict_errors_are_in_document_order() {
        let map = decoded(
            "core.v1.ConfigMap",
            r#"{"metadata":{"name":"a","bogus":1},"nosuch":"x","data":{"a":"1","a":"2"},"nosuch2":{"x":1}}"#,
        );
        assert_eq!(
            map.strict,
            [
                r#"unknown field "metadata.bogus""#,
                r#"unknown field "nosuch""#,
                r#"duplicate field "data.a""#,
                r#"unknown field "nosuch2""#
            ]
        );
        assert_eq!(map.value, json!({"metadata": {"name": "a"}, "data": {"a": "2"}}));
    }

    #[test]
    fn type_errors_have_gos_text() {
        let ty = type_named("apps.v1.Deployment").unwrap();
        let error = |text: &str| decode(ty, text.as_bytes()).unwrap_err().to_string();
        assert_eq!(
            error(r#"{"spec":{"replicas":"x"}}"#),
            "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32"
        );
        assert_eq!(error("[]"), "json: cannot unmarshal array into Go value of type v1.Deployment");
    }

    #[test]
    fn quantities_and_times_are_canonicalized() {
        let limits =
            decoded("core.v1.ResourceRequirements", r#"{"limits":{"cpu":"0.5","memory":1073741824}}"#);
        assert_eq!(limits.value, json!({"limits": {"cpu": "500m", "memory": "1073741824"}}));
        let meta = decoded("meta.v1.ObjectMeta", r#"{"deletionTimestamp":"2026-01-02T03:04:05.5+01:00"}"#);
        assert_eq!(meta.value, json!({"deletionTimestamp": "2026-01-02T02:04:05Z"}));
    }

    #[test]
    fn the_fast_check_accepts_only_canonical_quantities() {
        let mut known = 0;
        for number in ["1", "10", "100", "128", "999", "1000", "1023", "1024", "1500", "2048", "123456789"] {
            for suffix in ["", "m", "k", "M", "G", "Ki", "Mi", "Gi", "Ti", "E", "e3"] {
                let text = format!("{number}{suffix}");
                if is_canonical_quantity(&text) {
                    known += 1;
                    assert_eq!(Quantity::parse(&text).unwrap().to_string(), text);
                }
            }
        }
        assert!(known > 60, "{known}");
        for other in ["", "m", "0", "0m", "01", "-1", "+1", "1.5", " 1", "1 ", "1234567890"] {
            assert!(!is_canonical_quantity(other), "{other}");
        }
    }

    #[test]
    fn a_complete_object_without_empty_lists_and_maps_is_normal() {
        let ty = type_named("core.v1.Pod").unwrap();
        let mut normal = json!({"metadata": {"creationTimestamp": null}, "spec": {"containers": [{"name": "a", "resources": {"limits": {"cpu": "0.5"}}}], "hostNetwork": false, "nosuch": 1}, "status": {"phase": ""}});
        assert_eq!(complete(ty, &mut normal), Ok(Completed { unknown: true, form: Form::Normal }));
        let before = normal.clone();
        normalise(ty, &mut normal).unwrap();
        assert_eq!(normal, before);
        let mut with_empty = json!({"spec": {"containers": [{"name": "a", "args": []}]}});
        assert_eq!(complete(ty, &mut with_empty), Ok(Completed { unknown: false, form: Form::Complete }));
    }

    #[test]
    fn normalising_is_idempotent() {
        let ty = type_named("core.v1.Pod").unwrap();
        let mut value = json!({"spec": {"containers": [{"name": "a", "env": [{"name": "A", "value": ""}]}], "hostNetwork": false}});
        normalise(ty, &mut value).unwrap();
        let once = value.clone();
        normalise(ty, &mut value).unwrap();
        assert_eq!(value, once);
    }
}
