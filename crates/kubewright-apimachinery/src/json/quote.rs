//! Quoting like Go's `strconv.Quote`, used by `%q` in upstream's messages.
//!
//! Printability follows the Unicode categories known to Rust's standard library. It can differ from Go for
//! rare unassigned code points.

use std::fmt::Write as _;

/// Quotes the text like Go's `%q`.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        if c == '"' {
            out.push_str("\\\"");
        } else {
            push_escaped(&mut out, c);
        }
    }
    out.push('"');
    out
}

/// Quotes an input byte with single quotes, as in the syntax errors of `encoding/json`.
pub(super) fn quote_byte(byte: u8) -> String {
    let mut out = String::from("'");
    if byte == b'\'' {
        out.push_str("\\'");
    } else {
        push_escaped(&mut out, char::from(byte));
    }
    out.push('\'');
    out
}

fn push_escaped(out: &mut String, c: char) {
    let short = match c {
        '\\' => "\\\\",
        '\u{7}' => "\\a",
        '\u{8}' => "\\b",
        '\u{c}' => "\\f",
        '\n' => "\\n",
        '\r' => "\\r",
        '\t' => "\\t",
        '\u{b}' => "\\v",
        _ if is_printable(c) => {
            out.push(c);
            return;
        }
        _ => {
            let code = u32::from(c);
            let written = match code {
                0..=0x1f | 0x7f => write!(out, "\\x{code:02x}"),
                0x80..=0xffff => write!(out, "\\u{code:04x}"),
                _ => write!(out, "\\U{code:08x}"),
            };
            written.expect("writing to a string cannot fail");
            return;
        }
    };
    out.push_str(short);
}

/// Like Go's `unicode.IsPrint`, where U+0020 is the only printable space.
fn is_printable(c: char) -> bool {
    match c {
        ' '..='~' => true,
        // Format characters, private use and unassigned code points.
        '\u{ad}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{e000}'..='\u{f8ff}'
        | '\u{feff}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{fffe}'..='\u{ffff}'
        | '\u{e0000}'..='\u{10ffff}' => false,
        _ => !c.is_control() && !c.is_whitespace(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_quoted_like_in_go() {
        assert_eq!(quote("spec.replicas"), "\"spec.replicas\"");
        assert_eq!(quote("a\"b\\c'd"), r#""a\"b\\c'd""#);
        assert_eq!(quote("\u{7}\u{8}\u{c}\n\r\t\u{b}\u{1}\u{7f}"), r#""\a\b\f\n\r\t\v\x01\x7f""#);
        assert_eq!(quote("é日😀\u{fffd}"), "\"é日😀\u{fffd}\"");
        assert_eq!(quote("\u{85}\u{a0}\u{2028}\u{feff}\u{e0001}"), r#""\u0085\u00a0\u2028\ufeff\U000e0001""#);
    }

    #[test]
    fn a_byte_is_quoted_like_in_the_go_json_scanner() {
        assert_eq!(quote_byte(b'x'), "'x'");
        assert_eq!(quote_byte(b'"'), "'\"'");
        assert_eq!(quote_byte(b'\''), "'\\''");
        assert_eq!(quote_byte(0), "'\\x00'");
        assert_eq!(quote_byte(0xe2), "'â'");
        assert_eq!(quote_byte(0xad), "'\\u00ad'");
    }
}
