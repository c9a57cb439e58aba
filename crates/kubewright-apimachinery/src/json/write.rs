//! Serialization like Go's `encoding/json`.
//!
//! Differs from serde_json in the text only: Go writes the float `1000.0` as `1000`, so that clients can
//! decode it to an integer, and escapes `<`, `>` and `&`. The exact text matters where the server quotes
//! objects in messages.

use std::io::Write as _;

use serde_json::{Map, Number, Value};

/// Serializes the value as compact JSON with sorted keys.
pub fn to_string(value: &Value) -> String {
    String::from_utf8(to_vec(value)).expect("the output is valid UTF-8")
}

/// Like [`to_string`], as bytes.
pub fn to_vec(value: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    write_value(&mut out, value);
    out
}

/// Like [`to_string`], appended to `out`.
pub fn write_to(out: &mut Vec<u8>, value: &Value) {
    write_value(out, value);
}

/// Like [`write_to`], for a value with objects kept as text by
/// [`ParseOptions::text_at`](super::ParseOptions::text_at).
pub fn write_with_text(out: &mut Vec<u8>, value: &Value, text_at: &[&str]) {
    match (value, text_at) {
        (Value::String(text), []) if text.starts_with('{') => out.extend_from_slice(text.as_bytes()),
        (Value::Array(items), ["[]", below @ ..]) => {
            write_items(out, items, |out, item| write_with_text(out, item, below));
        }
        (Value::Object(fields), [name, below @ ..]) => write_fields(out, fields, |out, key, field| {
            if key == *name {
                write_with_text(out, field, below);
            } else {
                write_value(out, field);
            }
        }),
        _ => write_value(out, value),
    }
}

fn write_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Number(number) => write_number(out, number),
        Value::String(text) => write_string(out, text),
        Value::Array(items) => write_items(out, items, write_value),
        Value::Object(fields) => write_fields(out, fields, |out, _, field| write_value(out, field)),
    }
}

fn write_items(out: &mut Vec<u8>, items: &[Value], write: impl Fn(&mut Vec<u8>, &Value)) {
    out.push(b'[');
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        write(out, item);
    }
    out.push(b']');
}

fn write_fields(out: &mut Vec<u8>, fields: &Map<String, Value>, write: impl Fn(&mut Vec<u8>, &str, &Value)) {
    out.push(b'{');
    for (i, (key, field)) in fields.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        write_string(out, key);
        out.push(b':');
        write(out, key, field);
    }
    out.push(b'}');
}

fn write_number(out: &mut Vec<u8>, number: &Number) {
    let written = match number.as_f64().filter(|_| number.is_f64()) {
        Some(float) => write_float(out, float),
        None => write!(out, "{number}"),
    };
    written.expect("writing to a vector cannot fail");
}

/// Go uses an exponent below 1e-6 and from 1e21 on.
fn write_float(out: &mut Vec<u8>, float: f64) -> std::io::Result<()> {
    let magnitude = float.abs();
    if magnitude != 0.0 && magnitude < 1e-6 {
        write!(out, "{float:e}")
    } else if magnitude >= 1e21 {
        let text = format!("{float:e}");
        let (mantissa, exponent) = text.split_once('e').expect("{:e} always prints an exponent");
        write!(out, "{mantissa}e+{exponent}")
    } else {
        write!(out, "{float}")
    }
}

/// Bytes that never need escaping.
static PLAIN: [bool; 256] = {
    let mut plain = [true; 256];
    let mut byte = 0;
    while byte < 0x20 {
        plain[byte] = false;
        byte += 1;
    }
    let mut others: &[u8] = b"\"\\<>&\xe2";
    while let [byte, rest @ ..] = others {
        plain[*byte as usize] = false;
        others = rest;
    }
    plain
};

/// Writes the text as a JSON string.
pub fn write_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    write_escaped(out, text);
    out.push(b'"');
}

/// Writes the text escaped for a JSON string, without quotes.
pub fn write_escaped(out: &mut Vec<u8>, text: &str) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let bytes = text.as_bytes();
    let mut clean_from = 0;
    for (i, &byte) in bytes.iter().enumerate() {
        if PLAIN[usize::from(byte)] {
            continue;
        }
        let escape: &[u8] = match byte {
            b'"' => b"\\\"",
            b'\\' => b"\\\\",
            0x08 => b"\\b",
            0x0c => b"\\f",
            b'\n' => b"\\n",
            b'\r' => b"\\r",
            b'\t' => b"\\t",
            b'<' | b'>' | b'&' | 0..=0x1f => {
                let digits = [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 0xf)]];
                &[b'\\', b'u', b'0', b'0', digits[0], digits[1]]
            }
            // Go escapes U+2028 and U+2029, which are line terminators in JavaScript.
            0xe2 if bytes[i..].starts_with(b"\xe2\x80\xa8") => b"\\u2028",
            0xe2 if bytes[i..].starts_with(b"\xe2\x80\xa9") => b"\\u2029",
            _ => continue,
        };
        out.extend_from_slice(&bytes[clean_from..i]);
        out.extend_from_slice(escape);
        clean_from = i + if byte == 0xe2 { 3 } else { 1 };
    }
    out.extend_from_slice(&bytes[clean_from..]);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_written_compactly_with_sorted_keys() {
        assert_eq!(to_string(&json!({"b": [1, true, null], "a": {}})), r#"{"a":{},"b":[1,true,null]}"#);
    }

    #[test]
    fn a_whole_float_is_written_as_an_integer() {
        assert_eq!(
            to_string(&json!([1000.0, 0.5, -0.0, 1e20, 1e21, 1.5e300])),
            "[1000,0.5,-0,100000000000000000000,1e+21,1.5e+300]"
        );
        assert_eq!(to_string(&json!([1e-6, 1e-7, 1.25e-10])), "[0.000001,1e-7,1.25e-10]");
    }

    #[test]
    fn html_and_control_characters_are_escaped() {
        assert_eq!(
            to_string(&json!("<a href=\"x\">&\n\u{8}\u{c}\u{1}\u{7f}\u{2028}é\u{2029}\u{201c}")),
            "\"\\u003ca href=\\\"x\\\"\\u003e\\u0026\\n\\b\\f\\u0001\u{7f}\\u2028é\\u2029\u{201c}\""
        );
    }
}
