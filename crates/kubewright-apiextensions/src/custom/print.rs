//! Formats values like Go's `%v`, `%T` and field errors.

use std::fmt::Write as _;

use serde_json::Value;

use kubewright_apimachinery::field::quote;
use kubewright_apimachinery::json;

/// A value in a field error: strings quoted, scalars plain, everything else as JSON.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        Value::Number(number) if number.is_f64() => float(number.as_f64().unwrap_or_default()),
        other => json::to_string(other),
    }
}

/// Formats a value like `%v`.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(plain).collect::<Vec<_>>().join(" "))
        }
        Value::Object(fields) => {
            let fields: Vec<String> = fields.iter().map(|(name, v)| format!("{name}:{}", plain(v))).collect();
            format!("map[{}]", fields.join(" "))
        }
        Value::Number(number) if number.is_f64() => float(number.as_f64().unwrap_or_default()),
        other => other.to_string(),
    }
}

/// The Go type of a value, like `%T`.
pub(super) fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// Formats a float like `%v`: with an exponent below 1e-4 and from a million on.
pub(super) fn float(value: f64) -> String {
    let text = format!("{value:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if value == 0.0 || (-4..6).contains(&exponent) {
        return format!("{value}");
    }
    let mut out = mantissa.to_owned();
    let sign = if exponent < 0 { '-' } else { '+' };
    write!(out, "e{sign}{:02}", exponent.abs()).unwrap_or_default();
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn floats_are_formatted_like_in_go() {
        for (value, text) in [
            (0.5, "0.5"),
            (1000.0, "1000"),
            (-3.0, "-3"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (123_456.5, "123456.5"),
            (1_000_000.0, "1e+06"),
            (1e21, "1e+21"),
            (1.5e300, "1.5e+300"),
        ] {
            assert_eq!(float(value), text);
        }
    }

    #[test]
    fn values_are_formatted_like_in_go() {
        let value = json!({"b": [1, "x", null], "a": true});
        assert_eq!(plain(&value), "map[a:true b:[1 x <nil>]]");
        assert_eq!(shown(&value), r#"{"a":true,"b":[1,"x",null]}"#);
        assert_eq!(shown(&json!(1000.0)), "1000");
        assert_eq!(shown(&json!("a\"b")), r#""a\"b""#);
        assert_eq!(go_type(&value), "map[string]interface {}");
    }
}
