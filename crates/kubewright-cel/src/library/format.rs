//! `text.format(args)`: clauses such as `%s` and `%.2f`.
//!
//! The parser of format strings is shared with the compile-time check of constant formats, where only the
//! types of the arguments are known.

use super::convert;
use crate::error::EvalError;
use crate::value::{List, Value};
use kubewright_apimachinery::field::quote;

const DEFAULT_PRECISION: usize = 6;

/// The verb of a clause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clause {
    String,
    Decimal,
    Fixed(usize),
    Scientific(usize),
    Binary,
    Hex { upper: bool },
    Octal,
}

/// A literal part or a clause of a format string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    Text(String),
    Clause(Clause),
}

/// Parses a format string for `args` arguments. Stops at the first error and returns it.
pub(crate) fn parts(format: &str, args: usize) -> (Vec<Part>, Option<String>) {
    let mut parts = Vec::new();
    let mut text = String::new();
    let mut used = 0;
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        text.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            text.push('%');
            rest = after;
            continue;
        }
        if rest.is_empty() {
            let problem = if used >= args {
                format!("index {used} out of range")
            } else {
                "unexpected end of string".to_owned()
            };
            return (parts, Some(problem));
        }
        if used >= args {
            return (parts, Some(format!("index {used} out of range")));
        }
        parts.push(Part::Text(std::mem::take(&mut text)));
        match clause(rest) {
            Ok((clause, length)) => {
                parts.push(Part::Clause(clause));
                rest = &rest[length..];
            }
            Err(problem) => return (parts, Some(format!("could not parse formatting clause: {problem}"))),
        }
        used += 1;
    }
    text.push_str(rest);
    parts.push(Part::Text(text));
    (parts, None)
}

fn clause(text: &str) -> Result<(Clause, usize), String> {
    let mut at = 0;
    let mut precision = DEFAULT_PRECISION;
    if let Some(after) = text.strip_prefix('.') {
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        at = 1 + digits;
        if at == text.len() {
            return Err("error while parsing precision: could not find end of precision specifier".to_owned());
        }
        precision = text[1..at].parse().map_err(|_| {
            let digits = quote(&text[1..at]);
            format!(
                "error while parsing precision: error while converting precision to integer: \
                     strconv.Atoi: parsing {digits}: invalid syntax"
            )
        })?;
    }
    let c = text[at..].chars().next().unwrap_or(' ');
    let clause = match c {
        's' => Clause::String,
        'd' => Clause::Decimal,
        'f' => Clause::Fixed(precision),
        'e' => Clause::Scientific(precision),
        'b' => Clause::Binary,
        'x' | 'X' => Clause::Hex { upper: c == 'X' },
        'o' => Clause::Octal,
        other => return Err(format!("unrecognized formatting clause \"{other}\"")),
    };
    Ok((clause, at + 1))
}

impl Clause {
    /// The error for a value that the clause cannot format.
    pub(crate) fn unsupported_type(self, type_name: &str) -> String {
        let what = match self {
            Self::String => {
                "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, \
                 durations, and timestamps"
            }
            Self::Decimal => "decimal clause can only be used on integers",
            Self::Fixed(_) => "fixed-point clause can only be used on doubles",
            Self::Scientific(_) => "scientific clause can only be used on doubles",
            Self::Binary => "only integers and bools can be formatted as binary",
            Self::Hex { .. } => "only integers, byte buffers, and strings can be formatted as hex",
            Self::Octal => "octal clause can only be used on integers",
        };
        format!("error during formatting: {what}, was given {type_name}")
    }
}

/// Formats `args`.
pub(super) fn format(format: &str, args: &List<'_>) -> Result<String, EvalError> {
    let (parts, problem) = parts(format, args.len());
    let mut text = String::new();
    let mut values = args.iter();
    for part in parts {
        match part {
            Part::Text(part) => text.push_str(&part),
            Part::Clause(clause) => {
                let Some(value) = values.next() else { break };
                text.push_str(&filled(clause, &value?)?);
            }
        }
    }
    problem.map_or(Ok(text), |problem| Err(EvalError::new(problem)))
}

fn filled(clause: Clause, value: &Value<'_>) -> Result<String, EvalError> {
    let text = match (clause, value) {
        (Clause::String, value) => plain(value)?,
        (Clause::Decimal, Value::Int(value)) => Some(value.to_string()),
        (Clause::Decimal, Value::Uint(value)) => Some(value.to_string()),
        (Clause::Fixed(precision), value) => double(value).map(|value| fixed(value, precision)),
        (Clause::Scientific(precision), value) => double(value).map(|value| scientific(value, precision)),
        (Clause::Binary, Value::Bool(value)) => Some(u8::from(*value).to_string()),
        (Clause::Binary, Value::Int(value)) => Some(signed(*value, |value| format!("{value:b}"))),
        (Clause::Binary, Value::Uint(value)) => Some(format!("{value:b}")),
        (Clause::Octal, Value::Int(value)) => Some(signed(*value, |value| format!("{value:o}"))),
        (Clause::Octal, Value::Uint(value)) => Some(format!("{value:o}")),
        (Clause::Hex { .. }, Value::Int(value)) => Some(signed(*value, |value| format!("{value:x}"))),
        (Clause::Hex { .. }, Value::Uint(value)) => Some(format!("{value:x}")),
        (Clause::Hex { .. }, Value::String(text)) => Some(hex(text.as_bytes())),
        (Clause::Hex { .. }, Value::Bytes(bytes)) => Some(hex(bytes)),
        _ => None,
    };
    match (clause, text) {
        (Clause::Hex { upper: true }, Some(text)) => Ok(text.to_uppercase()),
        (_, Some(text)) => Ok(text),
        (_, None) => Err(EvalError::new(clause.unsupported_type(value.type_name()))),
    }
}

fn signed(value: i64, write: fn(u64) -> String) -> String {
    format!("{}{}", if value < 0 { "-" } else { "" }, write(value.unsigned_abs()))
}

fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from(b"0123456789abcdef"[usize::from(value)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

fn double(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Double(value) => Some(*value),
        Value::String(text) => match &**text {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

/// Fixed-point notation with digits grouped by commas.
fn fixed(value: f64, precision: usize) -> String {
    if !value.is_finite() {
        return special(value);
    }
    let text = format!("{value:.precision$}");
    let digits = text.trim_start_matches('-');
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mut grouped = String::new();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let sign = if text.starts_with('-') { "-" } else { "" };
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{grouped}{point}{fraction}")
}

fn special(value: f64) -> String {
    let text = if value.is_nan() {
        "NaN"
    } else if value > 0.0 {
        "∞"
    } else {
        "-∞"
    };
    text.to_owned()
}

/// Scientific notation: `3.140000×10⁰⁰`.
fn scientific(value: f64, precision: usize) -> String {
    if !value.is_finite() {
        return special(value);
    }
    let text = format!("{value:.precision$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let raised: String = format!("{:02}", exponent.abs())
        .bytes()
        .filter_map(|digit| "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().nth(usize::from(digit - b'0')))
        .collect();
    let sign = if exponent < 0 { "⁻" } else { "" };
    format!("{digits}×10{sign}{raised}")
}

/// The result of `%s`; `None` if the value cannot be formatted.
fn plain(value: &Value<'_>) -> Result<Option<String>, EvalError> {
    Ok(match value {
        Value::Null => Some("null".to_owned()),
        Value::Type(name) => Some(name.clone().into_owned()),
        Value::List(list) => {
            let mut items = Vec::new();
            for item in list.iter() {
                items.push(nested(&item?)?);
            }
            Some(format!("[{}]", items.join(", ")))
        }
        Value::Map(map) => {
            let mut entries = Vec::new();
            for key in map.keys() {
                let value = map.find(&key)?.unwrap_or(Value::Null);
                entries.push((nested(&key)?, nested(&value)?));
            }
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            let entries: Vec<String> =
                entries.into_iter().map(|(key, value)| format!("{key}:{value}")).collect();
            Some(format!("{{{}}}", entries.join(", ")))
        }
        Value::Extension(_) | Value::Authorization(_) | Value::Optional(_) | Value::Unknown(_) => None,
        other => match convert::string_of(other) {
            Some(text) => Some(text?.into_owned()),
            None => None,
        },
    })
}

/// Formats a value inside a list or map, in CEL syntax.
fn nested(value: &Value<'_>) -> Result<String, EvalError> {
    let text = match value {
        Value::Double(value) => {
            let text = format!("{value:.DEFAULT_PRECISION$}");
            return Ok(if value.is_finite() { text } else { quote(&convert::double_to_string(*value)) });
        }
        other => plain(other)?.ok_or_else(|| {
            EvalError::new(format!(
                "error during formatting: no formatting function for {}",
                other.type_name()
            ))
        })?,
    };
    Ok(match value {
        Value::String(_) => quote(&text),
        Value::Bytes(_) => format!("b{}", quote(&text)),
        Value::Duration(_) => format!("duration({})", quote(&text)),
        Value::Timestamp(_) => format!("timestamp({})", quote(&text)),
        _ => text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn formatted(text: &str, args: Vec<Value<'static>>) -> String {
        let Value::List(args) = Value::list(args) else { unreachable!() };
        format(text, &args).unwrap_or_else(|error| error.to_string())
    }

    #[test]
    fn clauses_format_their_argument() {
        let args =
            vec![Value::Int(1), Value::string("abc"), Value::Double(1.0), Value::Duration(60_000_000_000)];
        assert_eq!(formatted("%d %s %f %s", args), "1 abc 1.000000 60s");
        assert_eq!(formatted("%e", vec![Value::Double(3.5)]), "3.500000×10⁰⁰");
        assert_eq!(formatted("%.2f%%", vec![Value::Double(12345.678)]), "12,345.68%");
        assert_eq!(
            formatted(
                "%x %X %b %o",
                vec![Value::Int(-30), Value::string("k"), Value::Bool(true), Value::Int(8)]
            ),
            "-1e 6B 1 10"
        );
        assert_eq!(
            formatted("%s", vec![Value::list(vec![Value::string("a"), Value::Double(1.5)])]),
            "[\"a\", 1.500000]"
        );
    }

    #[test]
    fn invalid_formats_and_arguments_are_errors() {
        assert_eq!(
            formatted("%d", vec![Value::string("a")]),
            "error during formatting: decimal clause can only be used on integers, was given string"
        );
        assert_eq!(formatted("%s %s", vec![Value::Int(1)]), "index 1 out of range");
        assert_eq!(
            formatted("%q", vec![Value::Int(1)]),
            "could not parse formatting clause: unrecognized formatting clause \"q\""
        );
    }
}
