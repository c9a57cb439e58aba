//! Quoting as Go's `strconv.Quote` does it: what `%q` prints in upstream's messages.
//!
//! Which characters count as printable follows Unicode's general categories only as far as Rust's standard
//! library knows them; letters, digits, punctuation and symbols agree, and rare unassigned code points may not.

use std::fmt::Write as _;

/// The text in double quotes, escaped as Go's `%q` escapes it.
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

/// One byte of input in single quotes, as `encoding/json` shows the byte it stumbled over.
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

/// Go counts only the ASCII space among the spaces as printable.
fn is_printable(c: char) -> bool {
    match c {
        ' '..='~' => true,
        // Format and private-use characters, and code points that are none.
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
    fn text_is_quoted_as_go_quotes_it() {
        assert_eq!(quote("spec.replicas"), "\"spec.replicas\"");
        assert_eq!(quote("a\"b\\c'd"), r#""a\"b\\c'd""#);
        assert_eq!(quote("\u{7}\u{8}\u{c}\n\r\t\u{b}\u{1}\u{7f}"), r#""\a\b\f\n\r\t\v\x01\x7f""#);
        assert_eq!(quote("é日😀\u{fffd}"), "\"é日😀\u{fffd}\"");
        assert_eq!(quote("\u{85}\u{a0}\u{2028}\u{feff}\u{e0001}"), r#""\u0085\u00a0\u2028\ufeff\U000e0001""#);
    }

    #[test]
    fn a_byte_is_quoted_as_the_json_scanner_shows_it() {
        assert_eq!(quote_byte(b'x'), "'x'");
        assert_eq!(quote_byte(b'"'), "'\"'");
        assert_eq!(quote_byte(b'\''), "'\\''");
        assert_eq!(quote_byte(0), "'\\x00'");
        assert_eq!(quote_byte(0xe2), "'â'");
        assert_eq!(quote_byte(0xad), "'\\u00ad'");
    }
}
