//! Type conversion functions.

use std::borrow::Cow;

use super::Function;
use super::time::{self, Timestamp};
use crate::error::EvalError;
use crate::value::{Evaluated, Extension, Value};
use kubewright_apimachinery::duration::parse_go_duration;

pub(super) fn lookup(name: &str) -> Option<Function> {
    Some(match name {
        "type" => |args| Some(Ok(Value::Type(Cow::Owned(args.first()?.type_name().to_owned())))),
        "dyn" => |args| Some(Ok(args.first()?.clone())),
        "bool" => to_bool,
        "bytes" => to_bytes,
        "double" => to_double,
        "duration" => to_duration,
        "int" => to_int,
        "string" => to_string,
        "timestamp" => to_timestamp,
        "uint" => to_uint,
        _ => return None,
    })
}

/// Whether a call with constant arguments is evaluated at compile time.
pub(crate) fn is_conversion(name: &str) -> bool {
    matches!(name, "bool" | "bytes" | "double" | "duration" | "int" | "string" | "timestamp" | "uint")
}

fn failed(from: &str, to: &str) -> EvalError {
    EvalError::new(format!("type conversion error from '{from}' to '{to}'"))
}

fn to_bool<'a>(args: &[Value<'a>]) -> Option<Evaluated<'a>> {
    Some(match args {
        [Value::Bool(value)] => Ok(Value::Bool(*value)),
        [Value::String(text)] => match &**text {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Value::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Value::Bool(false)),
            _ => Err(failed("string", "bool")),
        },
        _ => return None,
    })
}

fn to_bytes<'a>(args: &[Value<'a>]) -> Option<Evaluated<'a>> {
    Some(match args {
        [bytes @ Value::Bytes(_)] => Ok(bytes.clone()),
        [Value::String(text)] => Ok(Value::Bytes(text.as_bytes().into())),
        _ => return None,
    })
}

#[expect(clippy::cast_precision_loss, reason = "a double has no more digits")]
fn to_double<'a>(args: &[Value<'a>]) -> Option<Evaluated<'a>> {
    Some(match args {
        [Value::Double(value)] => Ok(Value::Double(*value)),
        [Value::Int(value)] => Ok(Value::Double(*value as f64)),
        [Value::Uint(value)] => Ok(Value::Double(*value as f64)),
        [Value::String(text)] => {
            parse_double(text).map(Value::Double).ok_or_else(|| failed("string", "double"))
        }
        _ => return None,
    })
}

/// Like Go's `strconv.ParseFloat`, without hexadecimal numbers.
fn parse_double(text: &str) -> Option<f64> {
    let bare = text.trim_start_matches(['+', '-']);
    let is_word = ["inf", "infinity", "nan"].iter().any(|word| bare.eq_ignore_ascii_case(word));
    let parsed: f64 = text.parse().ok()?;
    (is_word || parsed.is_finite()).then_some(parsed)
}

fn to_duration<'a>(args: &[Value<'a>]) -> Option<Evaluated<'a>> {
    Some(match args {
        [Value::Duration(value) | Value::Int(value)] => Ok(Value::Duration(*value)),
        [Value::String(text)] => parse_go_duration(text)
            .map(Value::Duration)
            .map_err(|_| failed("string", "google.protobuf.Duration")),
        _ => return None,
    })
}

fn to_int<'a>(args: &[Value<'a>]) -> Option<Evaluated<'a>> {
    let overflow = || EvalError::new("integer overflow");
    Some(match args {
        [Value::Int(value) | Value::Duration(value)] => Ok(Value::Int(*value)),
        [Value::Uint(value)] => i64::try_from(*value).map(Value::Int).map_err(|_| overflow()),
        #[expect(clippy::cast_possible_truncation, reason = "the range is checked above")]
        [Value::Double(value)] => {
            let fits = *value > -(2f64.powi(63)) && *value < 2f64.powi(63);
            if fits { Ok(Value::Int(*value as i64)) } else { Err(overflow()) }
        }
        [Value::String(text)] => text.parse().map(Value::Int).map_err(|_| failed("string", "int")),
        [Value::Timestamp(time)] => Ok(Value::Int(time.seconds())),
        _ => return None,
    })
}

fn to_uint<'a>(args: &[Value<'a>]) -> Option<Evaluated<'a>> {
    let overflow = || EvalError::new("unsigned integer overflow");
    Some(match args {
        [Value::Uint(value)] => Ok(Value::Uint(*value)),
        [Value::Int(value)] => u64::try_from(*value).map(Value::Uint).map_err(|_| overflow()),
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the range is checked above"
        )]
        [Value::Double(value)] => {
            let fits = *value >= 0.0 && *value < 2f64.powi(64);
            if fits { Ok(Value::Uint(*value as u64)) } else { Err(overflow()) }
        }
        [Value::String(text)] => {
            let digits = text.strip_prefix('+').map_or(Some(&**text), |_| None);
            digits
                .and_then(|digits| digits.parse().ok())
                .map(Value::Uint)
                .ok_or_else(|| failed("string", "uint"))
        }
        _ => return None,
    })
}

fn to_timestamp<'a>(args: &[Value<'a>]) -> Option<Evaluated<'a>> {
    let overflow = || EvalError::new("timestamp overflow");
    Some(match args {
        [Value::Timestamp(time)] => Ok(Value::Timestamp(*time)),
        [Value::Int(seconds)] => Timestamp::new(*seconds, 0).map(Value::Timestamp).ok_or_else(overflow),
        [Value::String(text)] => match time::parse_rfc3339(text) {
            Some(time) => Ok(Value::Timestamp(time)),
            None => Err(failed("string", "google.protobuf.Timestamp")),
        },
        _ => return None,
    })
}

fn to_string<'a>(args: &[Value<'a>]) -> Option<Evaluated<'a>> {
    let [value] = args else { return None };
    string_of(value).map(|found| found.map(Value::String))
}

/// The result of `string()`; `None` if there is no such conversion.
pub(crate) fn string_of<'a>(value: &Value<'a>) -> Option<Result<Cow<'a, str>, EvalError>> {
    Some(Ok(match value {
        Value::String(text) => text.clone(),
        Value::Bool(value) => Cow::Owned(value.to_string()),
        Value::Int(value) => Cow::Owned(value.to_string()),
        Value::Uint(value) => Cow::Owned(value.to_string()),
        Value::Double(value) => Cow::Owned(double_to_string(*value)),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Cow::Owned(text.to_owned()),
            Err(_) => return Some(Err(EvalError::new("invalid UTF-8 in bytes, cannot convert to string"))),
        },
        Value::Duration(nanos) => Cow::Owned(duration_to_string(*nanos)),
        Value::Timestamp(time) => Cow::Owned(time.to_string()),
        Value::Extension(Extension::Ip(ip)) => Cow::Owned(ip.to_string()),
        Value::Extension(Extension::Cidr(ip, bits)) => Cow::Owned(format!("{ip}/{bits}")),
        _ => return None,
    }))
}

/// Seconds with as many digits as needed: `1.5s`.
pub(crate) fn duration_to_string(nanos: i64) -> String {
    let (whole, fraction) = (nanos / 1_000_000_000, (nanos % 1_000_000_000).unsigned_abs());
    let sign = if nanos < 0 && whole == 0 { "-" } else { "" };
    if fraction == 0 {
        return format!("{whole}s");
    }
    let digits = format!("{fraction:09}");
    format!("{sign}{whole}.{}s", digits.trim_end_matches('0'))
}

/// Like Go's `%g`: uses an exponent for small numbers and for more than six digits before the point.
pub(crate) fn double_to_string(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let shortest = format!("{value:e}");
    let (digits, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if value == 0.0 || (-4..6).contains(&exponent) {
        return format!("{value}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_formatted_in_seconds() {
        assert_eq!(duration_to_string(60_000_000_000), "60s");
        assert_eq!(duration_to_string(1_500_000_000), "1.5s");
        assert_eq!(duration_to_string(-500_000_000), "-0.5s");
    }

    #[test]
    fn doubles_are_formatted_like_in_go() {
        assert_eq!(double_to_string(1.0), "1");
        assert_eq!(double_to_string(-1.5), "-1.5");
        assert_eq!(double_to_string(1_234_567.5), "1.2345675e+06");
        assert_eq!(double_to_string(0.00001), "1e-05");
    }
}
