//! Writes YAML like controller-gen.
//!
//! Keys are sorted, lists are not indented, lines are not folded, strings are quoted only if YAML 1.1 (which
//! Kubernetes tools use) would not parse them as strings, and multi-line strings are blocks. The same value
//! gives the same bytes, regardless of map order.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// A document, starting with the line `---`.
pub fn document(value: &Value) -> String {
    let mut text = String::from("---\n");
    match value {
        Value::Object(map) if !map.is_empty() => fields(&mut text, map, 0, false),
        Value::Array(list) if !list.is_empty() => items(&mut text, list, 0, false),
        scalar => {
            inline(&mut text, scalar, 2);
            text.push('\n');
        }
    }
    text
}

/// Several documents.
pub fn documents<'a>(values: impl IntoIterator<Item = &'a Value>) -> String {
    values.into_iter().map(document).collect()
}

/// Writes the fields of a map. `started` means that the first line follows `- ` and is already indented.
fn fields(text: &mut String, map: &Map<String, Value>, indent: usize, started: bool) {
    let mut sorted: Vec<_> = map.iter().collect();
    sorted.sort_by_key(|(name, _)| *name);
    for (at, (name, value)) in sorted.into_iter().enumerate() {
        if at > 0 || !started {
            pad(text, indent);
        }
        key(text, name);
        text.push(':');
        match value {
            Value::Object(map) if !map.is_empty() => {
                text.push('\n');
                fields(text, map, indent + 2, false);
            }
            Value::Array(list) if !list.is_empty() => {
                text.push('\n');
                items(text, list, indent, false);
            }
            scalar => {
                text.push(' ');
                inline(text, scalar, indent + 2);
                text.push('\n');
            }
        }
    }
}

fn items(text: &mut String, list: &[Value], indent: usize, started: bool) {
    for (at, value) in list.iter().enumerate() {
        if at > 0 || !started {
            pad(text, indent);
        }
        text.push_str("- ");
        match value {
            Value::Object(map) if !map.is_empty() => fields(text, map, indent + 2, true),
            Value::Array(list) if !list.is_empty() => items(text, list, indent + 2, true),
            scalar => {
                inline(text, scalar, indent + 2);
                text.push('\n');
            }
        }
    }
}

fn pad(text: &mut String, indent: usize) {
    text.extend(std::iter::repeat_n(' ', indent));
}

/// Writes a scalar or an empty collection. `indent` is that of block lines.
fn inline(text: &mut String, value: &Value, indent: usize) {
    match value {
        Value::String(string) if is_block(string) => block(text, string, indent),
        Value::String(string) => scalar(text, string),
        Value::Array(_) => text.push_str("[]"),
        Value::Object(_) => text.push_str("{}"),
        // Other scalars are the same in JSON and YAML.
        other => _ = write!(text, "{other}"),
    }
}

fn key(text: &mut String, name: &str) {
    if name.contains('\n') { double_quoted(text, name) } else { scalar(text, name) }
}

fn scalar(text: &mut String, string: &str) {
    if !string.chars().all(is_printable) || string.contains('\n') || is_not_a_string(string) {
        double_quoted(text, string);
    } else if is_plain(string) {
        text.push_str(string);
    } else {
        text.push('\'');
        text.push_str(&string.replace('\'', "''"));
        text.push('\'');
    }
}

fn double_quoted(text: &mut String, string: &str) {
    text.push('"');
    for c in string.chars() {
        match c {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\t' => text.push_str("\\t"),
            '\r' => text.push_str("\\r"),
            c if is_printable(c) => text.push(c),
            c if u32::from(c) > 0xffff => _ = write!(text, "\\U{:08x}", u32::from(c)),
            c => _ = write!(text, "\\u{:04x}", u32::from(c)),
        }
    }
    text.push('"');
}

/// Whether a multi-line string can be a block: its first line determines the indentation, and it ends with at
/// most one newline.
fn is_block(string: &str) -> bool {
    string.contains('\n')
        && !string.starts_with([' ', '\t', '\n'])
        && !string.ends_with("\n\n")
        && string.chars().all(|c| c == '\n' || is_printable(c))
        // A last line of spaces would count as the end of the block.
        && string.trim_end_matches('\n').lines().last().is_some_and(|line| !line.trim().is_empty())
}

fn block(text: &mut String, string: &str, indent: usize) {
    text.push_str(if string.ends_with('\n') { "|" } else { "|-" });
    for line in string.trim_end_matches('\n').split('\n') {
        text.push('\n');
        if !line.is_empty() {
            pad(text, indent);
            text.push_str(line);
        }
    }
}

/// Characters that need no escape, without some that parsers handle incorrectly.
fn is_printable(c: char) -> bool {
    !matches!(c, '\u{0}'..='\u{8}' | '\u{a}'..='\u{1f}' | '\u{7f}'..='\u{a0}' | '\u{2028}' | '\u{2029}' | '\u{feff}')
        && !matches!(c, '\u{fffe}' | '\u{ffff}')
}

/// Whether the syntax of a string requires no quotes.
fn is_plain(string: &str) -> bool {
    let mut chars = string.chars();
    let starts = match chars.next() {
        None => false,
        Some('-') => chars.next().is_some_and(char::is_alphanumeric),
        Some('_' | '/' | '.' | '(' | ')' | '^' | '$' | '\\' | '+' | '<' | ';') => true,
        Some(first) => first.is_alphanumeric(),
    };
    starts
        && !string.starts_with("...")
        && !string.contains('\t')
        && !string.contains(": ")
        && !string.contains(" #")
        && !string.ends_with([':', ' '])
}

/// Whether YAML 1.1 would parse a string as null, a boolean, a number or a time.
fn is_not_a_string(string: &str) -> bool {
    const WORDS: [&str; 14] =
        ["", "~", "null", "true", "false", "yes", "no", "on", "off", "y", "n", "<<", "=", ".nan"];
    let lower = string.to_ascii_lowercase();
    let unsigned = lower.strip_prefix(['+', '-']).unwrap_or(&lower);
    WORDS.contains(&lower.as_str()) || unsigned == ".inf" || is_number(unsigned) || is_time(string)
}

/// Whether `text`, in lower case and without sign, is a number.
fn is_number(text: &str) -> bool {
    let text = text.replace('_', "");
    let all = |digits: &str, radix| !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
    for (prefix, radix) in [("0x", 16), ("0b", 2), ("0o", 8)] {
        if let Some(digits) = text.strip_prefix(prefix) {
            return all(digits, radix);
        }
    }
    let (mantissa, exponent) = text.split_once('e').map_or((text.as_str(), None), |(m, e)| (m, Some(e)));
    if exponent.is_some_and(|e| !all(e.strip_prefix(['+', '-']).unwrap_or(e), 10)) {
        return false;
    }
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    // YAML 1.1 has base-60 numbers such as `1:30:00`.
    let mut sixties = whole.split(':');
    let first = sixties.next().unwrap_or_default();
    let digits = |part: &str| part.chars().all(|c| c.is_ascii_digit());
    digits(first)
        && digits(fraction)
        && !(first.is_empty() && fraction.is_empty())
        && sixties.all(|part| !part.is_empty() && part.len() <= 2 && digits(part))
}

/// `2024-01-01`, also followed by a time of day.
fn is_time(string: &str) -> bool {
    let mut parts = string.splitn(3, '-');
    let (Some(year), Some(month), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    let digits = |part: &str, most: usize| {
        (1..=most).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit())
    };
    let day = rest.split(['T', 't', ' ']).next().unwrap_or_default();
    year.len() == 4 && digits(year, 4) && digits(month, 2) && digits(day, 2)
}

#[cfg(test)]
mod tests;
