//! Decoding of number, string and bytes literals.
//!
//! The errors have cel-go's wording; the parser adds the position.

use std::sync::Arc;

use crate::ast::Literal;

pub(super) fn int(sign: &str, text: &str) -> Result<Literal, String> {
    let (digits, radix) = digits_of(text);
    let read = i64::from_str_radix(&format!("{sign}{digits}"), radix);
    read.map(Literal::Int).map_err(|_| "invalid int literal".to_owned())
}

pub(super) fn uint(text: &str) -> Result<Literal, String> {
    let (digits, radix) = digits_of(&text[..text.len() - 1]);
    u64::from_str_radix(digits, radix).map(Literal::Uint).map_err(|_| "invalid uint literal".to_owned())
}

pub(super) fn double(sign: &str, text: &str) -> Result<Literal, String> {
    match format!("{sign}{text}").parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(Literal::Double(value)),
        _ => Err("invalid double literal".to_owned()),
    }
}

pub(super) fn string(text: &str) -> Result<Literal, String> {
    let bytes = unescape(text, false)?;
    String::from_utf8(bytes).map(Literal::String).map_err(|_| UNREADABLE.to_owned())
}

pub(super) fn bytes(text: &str) -> Result<Literal, String> {
    Ok(Literal::Bytes(Arc::from(unescape(&text[1..], true)?)))
}

const UNREADABLE: &str = "unable to unescape string";

fn digits_of(text: &str) -> (&str, u32) {
    text.strip_prefix("0x").map_or((text, 10), |digits| (digits, 16))
}

/// Decodes the text between the quotes. `\x` and octal escapes denote bytes in bytes literals and code points
/// in strings.
fn unescape(text: &str, is_bytes: bool) -> Result<Vec<u8>, String> {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let (text, is_raw) = match text.strip_prefix(['r', 'R']) {
        Some(rest) => (rest, true),
        None => (text.as_str(), false),
    };
    let quotes =
        if text.len() >= 6 && (text.starts_with("'''") || text.starts_with("\"\"\"")) { 3 } else { 1 };
    let inner = &text[quotes..text.len() - quotes];
    if is_raw || !inner.contains('\\') {
        return Ok(inner.as_bytes().to_vec());
    }
    let mut read = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        if c != '\\' {
            push(&mut read, c);
            continue;
        }
        let escape = rest.chars().next().ok_or(UNREADABLE)?;
        rest = &rest[escape.len_utf8()..];
        let (length, radix) = match escape {
            'x' | 'X' => (2, 16),
            'u' if !is_bytes => (4, 16),
            'U' if !is_bytes => (8, 16),
            '0'..='3' => (2, 8),
            other => {
                push(&mut read, simple_escape(other).ok_or(UNREADABLE)?);
                continue;
            }
        };
        let digits = rest.get(..length).ok_or(UNREADABLE)?;
        rest = &rest[length..];
        let mut value = u32::from_str_radix(digits, radix).map_err(|_| UNREADABLE)?;
        if radix == 8 {
            value += u32::from(escape as u8 - b'0') * 64;
        }
        if is_bytes {
            read.push(u8::try_from(value).map_err(|_| UNREADABLE)?);
        } else {
            push(&mut read, char::from_u32(value).ok_or("invalid unicode code point")?);
        }
    }
    Ok(read)
}

fn push(bytes: &mut Vec<u8>, c: char) {
    bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

fn simple_escape(c: char) -> Option<char> {
    Some(match c {
        'a' => '\u{7}',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\u{b}',
        '\\' | '\'' | '"' | '`' | '?' => c,
        _ => return None,
    })
}
