//! Formats JSON values like Go's `%v`, `%s` and `%T`, for upstream's messages.

use std::fmt::Write as _;

use serde_json::{Map, Number, Value};

/// Formats a decoded value like Go's `%v`: `map[a:1 b:[x y]]`.
pub fn go_text(value: &Value) -> String {
    let mut text = String::new();
    write_value(&mut text, value);
    text
}

/// Like [`go_text`], for an object.
pub(super) fn go_map_text(map: &Map<String, Value>) -> String {
    let mut text = String::new();
    write_map(&mut text, map);
    text
}

/// Like [`go_text`], for a list.
pub(super) fn go_list_text(list: &[Value]) -> String {
    let mut text = String::new();
    write_list(&mut text, list);
    text
}

/// Formats a decoded value like Go's `%s`: values other than strings include their type.
pub(super) fn go_string_verb(value: &Value) -> String {
    match value {
        Value::Null => go_type(value).to_owned(),
        Value::Bool(_) | Value::Number(_) => format!("%!s({}={})", go_type(value), go_text(value)),
        _ => go_text(value),
    }
}

/// The type to which Go decodes a value.
pub(super) fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "%!s(<nil>)",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

fn write_value(text: &mut String, value: &Value) {
    match value {
        Value::Null => text.push_str("<nil>"),
        Value::Bool(yes) => text.push_str(if *yes { "true" } else { "false" }),
        Value::Number(number) => write_number(text, number),
        Value::String(string) => text.push_str(string),
        Value::Array(list) => write_list(text, list),
        Value::Object(map) => write_map(text, map),
    }
}

fn write_map(text: &mut String, map: &Map<String, Value>) {
    // Go sorts map keys.
    let mut members: Vec<(&String, &Value)> = map.iter().collect();
    members.sort_by_key(|(key, _)| *key);
    text.push_str("map[");
    for (at, (key, value)) in members.into_iter().enumerate() {
        if at > 0 {
            text.push(' ');
        }
        text.push_str(key);
        text.push(':');
        write_value(text, value);
    }
    text.push(']');
}

fn write_list(text: &mut String, list: &[Value]) {
    text.push('[');
    for (at, value) in list.iter().enumerate() {
        if at > 0 {
            text.push(' ');
        }
        write_value(text, value);
    }
    text.push(']');
}

/// Go's `%g`: an exponent of at least two digits if it is below -4 or above 5.
fn write_number(text: &mut String, number: &Number) {
    let Some(float) = number.as_f64().filter(|_| number.is_f64()) else {
        // Writing to a string cannot fail.
        write!(text, "{number}").unwrap_or_default();
        return;
    };
    let scientific = format!("{float:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let written = if (-4..6).contains(&exponent) {
        write!(text, "{float}")
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        write!(text, "{mantissa}e{sign}{:02}", exponent.abs())
    };
    written.unwrap_or_default();
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_formatted_like_in_go() {
        let value = json!({"b": [1, "x y", null], "a": {"c": true}, "d": 1.5});
        assert_eq!(go_text(&value), "map[a:map[c:true] b:[1 x y <nil>] d:1.5]");
    }

    #[test]
    fn floats_are_formatted_like_in_go() {
        let printed = |number: f64| go_text(&json!(number));
        assert_eq!(printed(0.0001), "0.0001");
        assert_eq!(printed(0.000_012_5), "1.25e-05");
        assert_eq!(printed(123_456.0), "123456");
        assert_eq!(printed(1_048_576.0), "1.048576e+06");
        assert_eq!(printed(1e21), "1e+21");
    }

    #[test]
    fn the_s_verb_adds_the_type_of_other_values() {
        assert_eq!(go_string_verb(&json!("x")), "x");
        assert_eq!(go_string_verb(&json!(5)), "%!s(int64=5)");
        assert_eq!(go_string_verb(&json!(null)), "%!s(<nil>)");
    }
}
