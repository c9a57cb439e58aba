//! YAML as controller-gen prints it.
//!
//! Owns the text of every manifest: keys sorted, lists not indented, no line folded, strings quoted only where a
//! reader of YAML 1.1 (the Kubernetes tools are such readers) would take them for something else, and texts of several
//! lines as blocks. The same value is always the same bytes, whatever order its maps are in.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// The text of a document, with the line `---` before it.
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

/// Several documents in one text.
pub fn documents<'a>(values: impl IntoIterator<Item = &'a Value>) -> String {
    values.into_iter().map(document).collect()
}

/// `started` says that the first line has its indentation already: it follows `- `.
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

/// A scalar, or something empty. `indent` is that of a block's lines.
fn inline(text: &mut String, value: &Value, indent: usize) {
    match value {
        Value::String(string) if is_block(string) => block(text, string, indent),
        Value::String(string) => scalar(text, string),
        Value::Array(_) => text.push_str("[]"),
        Value::Object(_) => text.push_str("{}"),
        // JSON's words for the others are YAML's as well.
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

/// Whether a text of several lines can be a block: its first line tells the indentation, and at most one line end is
/// at its end.
fn is_block(string: &str) -> bool {
    string.contains('\n')
        && !string.starts_with([' ', '\t', '\n'])
        && !string.ends_with("\n\n")
        && string.chars().all(|c| c == '\n' || is_printable(c))
        // A last line of spaces would be taken for the end of the block.
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

/// What YAML lets stand in a text as it is, less what readers have been seen to trip over.
fn is_printable(c: char) -> bool {
    !matches!(c, '\u{0}'..='\u{8}' | '\u{a}'..='\u{1f}' | '\u{7f}'..='\u{a0}' | '\u{2028}' | '\u{2029}' | '\u{feff}')
        && !matches!(c, '\u{fffe}' | '\u{ffff}')
}

/// Whether a string needs no quotes for its looks.
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

/// Whether YAML 1.1 would read a string as null, a boolean, a number or a time.
fn is_not_a_string(string: &str) -> bool {
    const WORDS: [&str; 14] =
        ["", "~", "null", "true", "false", "yes", "no", "on", "off", "y", "n", "<<", "=", ".nan"];
    let lower = string.to_ascii_lowercase();
    let unsigned = lower.strip_prefix(['+', '-']).unwrap_or(&lower);
    WORDS.contains(&lower.as_str()) || unsigned == ".inf" || is_number(unsigned) || is_time(string)
}

/// Of a number without its sign, in lower case.
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
    // Hours, minutes and seconds are one number in YAML 1.1.
    let mut sixties = whole.split(':');
    let first = sixties.next().unwrap_or_default();
    let digits = |part: &str| part.chars().all(|c| c.is_ascii_digit());
    digits(first)
        && digits(fraction)
        && !(first.is_empty() && fraction.is_empty())
        && sixties.all(|part| !part.is_empty() && part.len() <= 2 && digits(part))
}

/// `2024-01-01`, or anything that starts so and goes on with a time of day.
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
