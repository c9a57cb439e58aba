//! The parser behind [`super::parse`] and [`super::Document::parse`].
//!
//! Processes the bytes in one pass with an explicit stack, so input cannot overflow the thread's stack.
//! Syntax errors are those of Go's scanner in the same state. Go checks the whole syntax before it converts
//! numbers, so a number out of range is reported only if the syntax is valid.

use std::collections::HashSet;
use std::fmt::Write as _;

use serde_json::{Map, Number, Value};

use super::quote::quote_byte;
use super::{MAX_STRICT_ERRORS, ParseError, ParseOptions};

/// The output of the parser.
pub(super) trait Tree: Sized {
    type Fields: Default;

    fn null() -> Self;
    fn bool(bool: bool) -> Self;
    fn number(literal: &str) -> Result<Self, ParseError>;
    fn string(text: String) -> Self;
    fn array(items: Vec<Self>) -> Self;
    fn object(fields: Self::Fields) -> Self;
    /// Adds a field. Returns the key if it is a duplicate to report.
    fn insert(fields: &mut Self::Fields, key: String, field: Self) -> Option<String>;
}

impl Tree for Value {
    type Fields = Map<String, Value>;

    fn null() -> Self {
        Self::Null
    }

    fn bool(bool: bool) -> Self {
        Self::Bool(bool)
    }

    fn number(literal: &str) -> Result<Self, ParseError> {
        number(literal)
    }

    fn string(text: String) -> Self {
        Self::String(text)
    }

    fn array(items: Vec<Self>) -> Self {
        Self::Array(items)
    }

    fn object(fields: Self::Fields) -> Self {
        Self::Object(fields)
    }

    fn insert(fields: &mut Self::Fields, key: String, field: Self) -> Option<String> {
        match fields.entry(key) {
            serde_json::map::Entry::Vacant(entry) => {
                entry.insert(field);
                None
            }
            serde_json::map::Entry::Occupied(mut entry) => {
                entry.insert(field);
                Some(entry.key().clone())
            }
        }
    }
}

/// Converts a number literal: to an integer if it has that form and fits, otherwise to a float.
pub(super) fn number(literal: &str) -> Result<Value, ParseError> {
    if let Ok(integer) = literal.parse::<i64>() {
        return Ok(Value::from(integer));
    }
    // Rust parses an overflowing literal to infinity, which `Number` rejects.
    let float = literal.parse::<f64>().ok().and_then(Number::from_f64);
    float.map(Value::Number).ok_or_else(|| ParseError::Number { literal: literal.to_owned() })
}

/// Parses to a tree and the paths of duplicate fields.
pub(super) fn parse<T: Tree>(bytes: &[u8], options: ParseOptions) -> Result<(T, Vec<String>), ParseError> {
    Parser {
        bytes,
        text: str::from_utf8(bytes).ok(),
        at: 0,
        options,
        open: Vec::with_capacity(16),
        bad_number: None,
        duplicates: Duplicates::default(),
    }
    .run()
}

/// An unfinished array or object; `key` is that of the current field.
enum Open<T: Tree> {
    Array(Vec<T>),
    Object { fields: T::Fields, key: Key },
}

/// The key of a field and its offset.
#[derive(Default)]
struct Key {
    text: String,
    at: usize,
}

struct Parser<'a, T: Tree> {
    bytes: &'a [u8],
    /// The input as UTF-8, if all of it is valid. Avoids checking each string again.
    text: Option<&'a str>,
    at: usize,
    options: ParseOptions,
    open: Vec<Open<T>>,
    bad_number: Option<ParseError>,
    duplicates: Duplicates,
}

impl<'a, T: Tree> Parser<'a, T> {
    fn run(mut self) -> Result<(T, Vec<String>), ParseError> {
        loop {
            let Some(mut value) = self.begin_value()? else { continue };
            // The value may complete its container, which then is the next completed value.
            loop {
                self.skip_space();
                if self.open.is_empty() {
                    return self.finish(value);
                }
                match self.end_value(value)? {
                    Some(container) => value = container,
                    None => break,
                }
            }
        }
    }

    fn finish(self, value: T) -> Result<(T, Vec<String>), ParseError> {
        if self.at < self.bytes.len() {
            return Err(self.unexpected("after top-level value"));
        }
        match self.bad_number {
            Some(error) => Err(error),
            None => Ok((value, self.duplicates.in_order())),
        }
    }

    /// Parses a scalar or an empty container, or opens a container and leaves its first value to the next
    /// call.
    fn begin_value(&mut self) -> Result<Option<T>, ParseError> {
        self.skip_space();
        let value = match self.peek()? {
            b'"' => T::string(self.string()?),
            b'-' | b'0'..=b'9' => self.number()?,
            b'{' if self.stays_text() => T::string(self.object_text()?),
            b'{' => {
                self.check_depth()?;
                self.at += 1;
                self.skip_space();
                if self.peek()? != b'}' {
                    let key = self.key()?;
                    self.open.push(Open::Object { fields: T::Fields::default(), key });
                    return Ok(None);
                }
                self.at += 1;
                T::object(T::Fields::default())
            }
            b'[' => {
                self.check_depth()?;
                self.at += 1;
                self.skip_space();
                if self.peek()? != b']' {
                    self.open.push(Open::Array(Vec::new()));
                    return Ok(None);
                }
                self.at += 1;
                T::array(Vec::new())
            }
            b't' => {
                self.literal("true")?;
                T::bool(true)
            }
            b'f' => {
                self.literal("false")?;
                T::bool(false)
            }
            b'n' => {
                self.literal("null")?;
                T::null()
            }
            _ => return Err(self.unexpected("looking for beginning of value")),
        };
        Ok(Some(value))
    }

    /// Whether the object at the current path is kept as text.
    fn stays_text(&self) -> bool {
        let place = self.options.text_at;
        !place.is_empty()
            && place.len() == self.open.len()
            && self.open.iter().zip(place).rev().all(|(open, name)| match open {
                Open::Array(_) => *name == "[]",
                Open::Object { key, .. } => key.text == *name,
            })
    }

    /// The source text of an object, up to its closing brace.
    fn object_text(&mut self) -> Result<String, ParseError> {
        let from = self.at;
        let mut depth = 0;
        loop {
            match self.peek()? {
                b'{' => depth += 1,
                b'}' => depth -= 1,
                b'"' => {
                    self.at += 1;
                    self.plain_run();
                    while self.peek()? != b'"' {
                        // Skip the escaped byte, which may be a quote.
                        self.at = self.bytes.len().min(self.at + 2);
                        self.plain_run();
                    }
                }
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return Ok(to_utf8(&self.bytes[from..self.at]));
            }
        }
    }

    /// Adds a value to its container. Advances to the next value of that container, or returns the container
    /// if it is complete.
    fn end_value(&mut self, value: T) -> Result<Option<T>, ParseError> {
        let (container, outer) = self.open.split_last_mut().expect("there is an open container");
        match container {
            Open::Array(items) => {
                items.push(value);
                match self.peek()? {
                    b',' => self.at += 1,
                    b']' => return Ok(self.close()),
                    _ => return Err(self.unexpected("after array element")),
                }
            }
            Open::Object { fields, key } => {
                let key = std::mem::take(key);
                if let Some(repeated) = T::insert(fields, key.text, value) {
                    self.duplicates.add(key.at, outer, &repeated);
                }
                match self.peek()? {
                    b',' => {
                        self.at += 1;
                        self.skip_space();
                        let next = self.key()?;
                        if let Some(Open::Object { key, .. }) = self.open.last_mut() {
                            *key = next;
                        }
                    }
                    b'}' => return Ok(self.close()),
                    _ => return Err(self.unexpected("after object key:value pair")),
                }
            }
        }
        Ok(None)
    }

    /// Closes the innermost container at its bracket.
    fn close(&mut self) -> Option<T> {
        self.at += 1;
        Some(match self.open.pop()? {
            Open::Array(items) => T::array(items),
            Open::Object { fields, .. } => T::object(fields),
        })
    }

    /// Parses a key and its colon.
    fn key(&mut self) -> Result<Key, ParseError> {
        if self.peek()? != b'"' {
            return Err(self.unexpected("looking for beginning of object key string"));
        }
        let at = self.at;
        let text = self.string()?;
        self.skip_space();
        if self.peek()? != b':' {
            return Err(self.unexpected("after object key"));
        }
        self.at += 1;
        Ok(Key { text, at })
    }

    fn check_depth(&self) -> Result<(), ParseError> {
        if self.open.len() < self.options.max_depth {
            Ok(())
        } else {
            Err(self.unexpected("exceeded max depth"))
        }
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.bytes.get(self.at) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Result<u8, ParseError> {
        self.bytes.get(self.at).copied().ok_or_else(|| ParseError::Syntax {
            message: "unexpected end of JSON input".to_owned(),
            offset: self.bytes.len(),
        })
    }

    /// The next byte inside a literal. Go appends a space to its input, so a truncated literal fails at that
    /// space.
    fn peek_in_literal(&self) -> u8 {
        self.bytes.get(self.at).copied().unwrap_or(b' ')
    }

    fn unexpected(&self, context: &str) -> ParseError {
        let byte = quote_byte(self.peek_in_literal());
        ParseError::Syntax { message: format!("invalid character {byte} {context}"), offset: self.at }
    }

    fn literal(&mut self, literal: &str) -> Result<(), ParseError> {
        for expected in literal.bytes() {
            if self.peek_in_literal() != expected {
                let expected = char::from(expected);
                return Err(self.unexpected(&format!("in literal {literal} (expecting '{expected}')")));
            }
            self.at += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Result<T, ParseError> {
        let start = self.at;
        if self.bytes[self.at] == b'-' {
            self.at += 1;
        }
        match self.peek_in_literal() {
            b'0' => self.at += 1,
            b'1'..=b'9' => self.skip_digits(),
            _ => return Err(self.unexpected("in numeric literal")),
        }
        if self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits("after decimal point in numeric literal")?;
        }
        if let Some(b'e' | b'E') = self.bytes.get(self.at) {
            self.at += 1;
            if let Some(b'+' | b'-') = self.bytes.get(self.at) {
                self.at += 1;
            }
            self.digits("in exponent of numeric literal")?;
        }
        let literal = str::from_utf8(&self.bytes[start..self.at]).expect("a number is ASCII");
        T::number(literal).or_else(|error| {
            self.bad_number.get_or_insert(error);
            Ok(T::null())
        })
    }

    fn digits(&mut self, context: &str) -> Result<(), ParseError> {
        if !self.peek_in_literal().is_ascii_digit() {
            return Err(self.unexpected(context));
        }
        self.skip_digits();
        Ok(())
    }

    fn skip_digits(&mut self) {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
    }

    /// Parses a string. The current byte is the opening quote.
    fn string(&mut self) -> Result<String, ParseError> {
        self.at += 1;
        let from = self.at;
        let run = self.plain_run();
        if self.peek()? == b'"' {
            let text = self.text.and_then(|text| text.get(from..self.at));
            self.at += 1;
            return Ok(text.map_or_else(|| to_utf8(run), str::to_owned));
        }
        let mut text = run.to_vec();
        loop {
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    return Ok(to_utf8(&text));
                }
                b'\\' => {
                    self.at += 1;
                    self.escape(&mut text)?;
                }
                _ => return Err(self.unexpected("in string literal")),
            }
            text.extend_from_slice(self.plain_run());
        }
    }

    /// Skips and returns the string bytes that need no decoding.
    fn plain_run(&mut self) -> &'a [u8] {
        let rest = &self.bytes[self.at..];
        let len = rest.iter().position(|byte| !PLAIN[usize::from(*byte)]);
        let run = &rest[..len.unwrap_or(rest.len())];
        self.at += run.len();
        run
    }

    /// Decodes an escape sequence after the backslash.
    fn escape(&mut self, text: &mut Vec<u8>) -> Result<(), ParseError> {
        let decoded = match self.peek_in_literal() {
            byte @ (b'"' | b'\\' | b'/') => byte,
            b'b' => 0x08,
            b'f' => 0x0c,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                self.at += 1;
                let c = self.escaped_char()?;
                text.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                return Ok(());
            }
            _ => return Err(self.unexpected("in string escape code")),
        };
        self.at += 1;
        text.push(decoded);
        Ok(())
    }

    /// Decodes `\uXXXX` or a surrogate pair, starting at the first digit. A lone surrogate becomes U+FFFD.
    fn escaped_char(&mut self) -> Result<char, ParseError> {
        let first = self.hex4()?;
        if let 0xd800..0xdc00 = first
            && self.bytes[self.at..].starts_with(b"\\u")
        {
            let before = self.at;
            self.at += 2;
            let second = self.hex4()?;
            if let 0xdc00..0xe000 = second {
                let code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            self.at = before;
        }
        Ok(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn hex4(&mut self) -> Result<u32, ParseError> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = char::from(self.peek_in_literal()).to_digit(16);
            code = code << 4 | digit.ok_or_else(|| self.unexpected("in \\u hexadecimal character escape"))?;
            self.at += 1;
        }
        Ok(code)
    }
}

/// Bytes that need no decoding in a string.
static PLAIN: [bool; 256] = {
    let mut plain = [true; 256];
    let mut control = 0;
    while control < b' ' {
        plain[control as usize] = false;
        control += 1;
    }
    plain[b'"' as usize] = false;
    plain[b'\\' as usize] = false;
    plain
};

/// Converts bytes to UTF-8. As in Go, each invalid byte becomes one U+FFFD; `String::from_utf8_lossy` would
/// merge them.
fn to_utf8(mut bytes: &[u8]) -> String {
    let mut text = String::new();
    loop {
        match str::from_utf8(bytes) {
            Ok(rest) if text.is_empty() => return rest.to_owned(),
            Ok(rest) => {
                text.push_str(rest);
                return text;
            }
            Err(error) => {
                let (valid, rest) = bytes.split_at(error.valid_up_to());
                text.push_str(str::from_utf8(valid).expect("checked above"));
                text.push(char::REPLACEMENT_CHARACTER);
                bytes = &rest[1..];
            }
        }
    }
}

/// Duplicate fields. Detected at the end of their value, reported in the order of their keys.
#[derive(Default)]
struct Duplicates {
    seen: HashSet<String>,
    found: Vec<(usize, String)>,
}

impl Duplicates {
    #[cold]
    fn add<T: Tree>(&mut self, key_at: usize, open: &[Open<T>], key: &str) {
        if self.found.len() == MAX_STRICT_ERRORS {
            return;
        }
        let mut path = String::new();
        for (depth, container) in open.iter().enumerate() {
            match container {
                // The number of finished items is the index of the current one.
                Open::Array(items) => {
                    write!(path, "[{}]", items.len()).expect("writing to a string cannot fail");
                }
                Open::Object { key, .. } => push_field(&mut path, depth, &key.text),
            }
        }
        push_field(&mut path, open.len(), key);
        if self.seen.insert(path.clone()) {
            self.found.push((key_at, path));
        }
    }

    fn in_order(mut self) -> Vec<String> {
        self.found.sort_unstable();
        self.found.into_iter().map(|(_, path)| path).collect()
    }
}

fn push_field(path: &mut String, depth: usize, key: &str) {
    if depth > 0 {
        path.push('.');
    }
    path.push_str(key);
}
