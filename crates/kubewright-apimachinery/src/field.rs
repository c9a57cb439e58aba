//! Field errors and field paths, like upstream's package `field`.
//!
//! Owns the error texts that follow `is invalid:`. They match upstream exactly, because users and programs
//! depend on them.

use std::collections::HashSet;
use std::fmt;

use serde_json::Value;

/// Maximum length of an inline path. Covers almost all paths of a Pod.
const SHORT: usize = 127;

/// The path of a field: `spec.containers[0].name`.
#[derive(Clone)]
pub struct Path(Text);

/// Validation builds many paths and prints few, so short ones need no allocation.
#[derive(Clone)]
enum Text {
    Short { bytes: [u8; SHORT], len: u8 },
    Long(String),
}

impl Path {
    /// A path that starts at `name`.
    pub fn new(name: &str) -> Self {
        Self::root().with(&[name])
    }

    /// The path of the object itself. Its text is empty and does not prefix children.
    pub fn root() -> Self {
        Self::default()
    }

    /// The field `name` below this one.
    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        if self.is_root() { self.with(&[name]) } else { self.with(&[".", name]) }
    }

    /// The element `index` of this list.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.with(&["[", &index.to_string(), "]"])
    }

    /// The entry `key` of this map.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        self.with(&["[", key, "]"])
    }

    fn with(&self, parts: &[&str]) -> Self {
        if let Text::Short { mut bytes, len } = self.0 {
            let mut end = usize::from(len);
            let fits = parts.iter().all(|part| {
                let Some(place) = bytes.get_mut(end..end + part.len()) else { return false };
                place.copy_from_slice(part.as_bytes());
                end += part.len();
                true
            });
            if fits && let Ok(len) = u8::try_from(end) {
                return Self(Text::Short { bytes, len });
            }
        }
        Self(Text::Long([self.as_str(), &parts.concat()].concat()))
    }

    fn is_root(&self) -> bool {
        matches!(self.0, Text::Short { len: 0, .. })
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        match &self.0 {
            // Always valid UTF-8: built from whole strings.
            Text::Short { bytes, len } => str::from_utf8(&bytes[..usize::from(*len)]).unwrap_or_default(),
            Text::Long(text) => text,
        }
    }
}

impl Default for Path {
    fn default() -> Self {
        Self(Text::Short { bytes: [0; SHORT], len: 0 })
    }
}

impl From<&str> for Path {
    fn from(path: &str) -> Self {
        Self::new(path)
    }
}

impl From<&Path> for Path {
    fn from(path: &Path) -> Self {
        path.clone()
    }
}

impl PartialEq for Path {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Path {}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Path").field(&self.as_str()).finish()
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Go prints a nil path like this.
        f.write_str(if self.is_root() { "<nil>" } else { self.as_str() })
    }
}

/// The type of a field error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The referenced value does not exist.
    NotFound,
    /// A required value is missing.
    Required,
    /// The value is a duplicate.
    Duplicate,
    /// The value is invalid.
    Invalid,
    /// The value is not one of the supported values.
    NotSupported,
    /// The field must not be set.
    Forbidden,
    /// The value has too many bytes or characters.
    TooLong,
    /// The value has too few bytes or characters.
    TooShort,
    /// The list has too many items.
    TooMany,
    /// The list has too few items.
    TooFew,
    /// Validation itself failed.
    Internal,
    /// The value has the wrong type.
    TypeInvalid,
}

impl ErrorKind {
    /// The `reason` of a cause in a Status.
    pub fn reason(self) -> &'static str {
        match self {
            Self::NotFound => "FieldValueNotFound",
            Self::Required => "FieldValueRequired",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooShort => "FieldValueTooShort",
            Self::TooMany => "FieldValueTooMany",
            Self::TooFew => "FieldValueTooFew",
            Self::Internal => "InternalError",
            Self::TypeInvalid => "FieldValueTypeInvalid",
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::NotFound => "Not found",
            Self::Required => "Required value",
            Self::Duplicate => "Duplicate value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooShort => "Too short",
            Self::TooMany => "Too many",
            Self::TooFew => "Too few",
            Self::Internal => "Internal error",
        }
    }
}

/// A validation error of a field.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldError {
    /// The error type.
    pub kind: ErrorKind,
    /// The field path.
    pub field: String,
    /// The formatted value; `None` where upstream omits it.
    pub value: Option<String>,
    /// The violated constraint.
    pub detail: String,
}

impl FieldError {
    fn new(kind: ErrorKind, field: &Path, value: Option<String>, detail: impl Into<String>) -> Self {
        Self { kind, field: field.to_string(), value, detail: detail.into() }
    }

    /// The value is invalid for the reason in `detail`.
    pub fn invalid(field: &Path, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, field, Some(printed(&value.into())), detail)
    }

    /// Like [`FieldError::invalid`], with a formatted value.
    pub fn invalid_printed(field: &Path, value: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, field, Some(value.into()), detail)
    }

    /// A required value is missing. The detail may be empty.
    pub fn required(field: &Path, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Required, field, None, detail)
    }

    /// The value is a duplicate.
    pub fn duplicate(field: &Path, value: impl Into<Value>) -> Self {
        Self::new(ErrorKind::Duplicate, field, Some(printed(&value.into())), "")
    }

    /// Like [`FieldError::duplicate`], with a formatted value.
    pub fn duplicate_printed(field: &Path, value: impl Into<String>) -> Self {
        Self::new(ErrorKind::Duplicate, field, Some(value.into()), "")
    }

    /// The referenced value does not exist.
    pub fn not_found(field: &Path, value: impl Into<Value>) -> Self {
        Self::new(ErrorKind::NotFound, field, Some(printed(&value.into())), "")
    }

    /// The value is not one of `supported`, which are printed in the given order.
    pub fn not_supported(field: &Path, value: impl Into<Value>, supported: &[&str]) -> Self {
        let quoted: Vec<String> = supported.iter().map(|s| quote(s)).collect();
        let detail = if quoted.is_empty() {
            String::new()
        } else {
            format!("supported values: {}", quoted.join(", "))
        };
        Self::new(ErrorKind::NotSupported, field, Some(printed(&value.into())), detail)
    }

    /// The field must not be set.
    pub fn forbidden(field: &Path, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Forbidden, field, None, detail)
    }

    /// The value has more than `max` bytes.
    pub fn too_long(field: &Path, max: usize) -> Self {
        Self::new(ErrorKind::TooLong, field, None, format!("may not be more than {max} byte{}", plural(max)))
    }

    /// The list has more than `max` items.
    pub fn too_many(field: &Path, actual: usize, max: usize) -> Self {
        let detail = format!("must have at most {max} item{}", plural(max));
        Self::new(ErrorKind::TooMany, field, Some(actual.to_string()), detail)
    }

    /// The value has the wrong type.
    pub fn type_invalid(field: &Path, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::TypeInvalid, field, Some(printed(&value.into())), detail)
    }

    /// Validation itself failed.
    pub fn internal(field: &Path, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, field, None, detail)
    }

    /// The message without the field path, as in the causes of a Status.
    pub fn body(&self) -> String {
        let mut body = self.kind.text().to_owned();
        if let Some(value) = &self.value {
            body.push_str(": ");
            body.push_str(value);
        }
        if !self.detail.is_empty() {
            body.push_str(": ");
            body.push_str(&self.detail);
        }
        body
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}

/// Errors in the order of their discovery.
pub type ErrorList = Vec<FieldError>;

/// Formats errors as one line: a single one as is, several in brackets without duplicates.
pub fn aggregate(errors: &[FieldError]) -> String {
    let mut messages: Vec<String> = errors.iter().map(FieldError::to_string).collect();
    let mut seen = HashSet::new();
    let first: Vec<bool> = messages.iter().map(|message| seen.insert(message.as_str())).collect();
    let mut first = first.into_iter();
    messages.retain(|_| first.next().unwrap_or_default());
    if messages.len() == 1 { messages.remove(0) } else { format!("[{}]", messages.join(", ")) }
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// A value as error messages show it: strings quoted like in Go, everything else as JSON.
pub fn printed(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        other => other.to_string(),
    }
}

/// Quotes a string like Go's `%q`.
pub fn quote(text: &str) -> String {
    use std::fmt::Write as _;
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{b}' => quoted.push_str("\\v"),
            '\u{c}' => quoted.push_str("\\f"),
            c if (c as u32) < 0x20 || c as u32 == 0x7f => {
                write!(quoted, "\\x{:02x}", c as u32).unwrap_or_default();
            }
            c if (0x80..0xa0).contains(&(c as u32))
                || matches!(c, '\u{ad}' | '\u{feff}' | '\u{2028}' | '\u{2029}') =>
            {
                write!(quoted, "\\u{:04x}", c as u32).unwrap_or_default();
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_upstreams_notation() {
        let path = Path::new("spec").child("containers").index(0).child("env").key("a");
        assert_eq!(path.as_str(), "spec.containers[0].env[a]");
        assert_eq!(Path::root().child("spec").as_str(), "spec");
    }

    #[test]
    fn field_errors_have_upstreams_text() {
        let at = Path::new("spec").child("x");
        assert_eq!(
            FieldError::invalid(&at, "a\"b", "must be nice").to_string(),
            r#"spec.x: Invalid value: "a\"b": must be nice"#
        );
        assert_eq!(
            FieldError::invalid(&at, -1, "must be more").to_string(),
            "spec.x: Invalid value: -1: must be more"
        );
        assert_eq!(FieldError::required(&at, "").to_string(), "spec.x: Required value");
        assert_eq!(
            FieldError::not_supported(&at, "c", &["a", "b"]).to_string(),
            r#"spec.x: Unsupported value: "c": supported values: "a", "b""#
        );
        assert_eq!(
            FieldError::too_long(&at, 63).to_string(),
            "spec.x: Too long: may not be more than 63 bytes"
        );
        assert_eq!(
            FieldError::too_many(&at, 3, 1).to_string(),
            "spec.x: Too many: 3: must have at most 1 item"
        );
    }

    #[test]
    fn several_errors_are_bracketed_and_deduplicated() {
        let at = Path::new("a");
        let one = FieldError::required(&at, "");
        let two = FieldError::forbidden(&at, "no");
        assert_eq!(aggregate(std::slice::from_ref(&one)), "a: Required value");
        assert_eq!(aggregate(&[one.clone(), two, one]), "[a: Required value, a: Forbidden: no]");
    }

    #[test]
    fn strings_are_quoted_like_in_go() {
        assert_eq!(quote("a\tb\u{1}é\u{7f}"), "\"a\\tb\\x01é\\x7f\"");
    }
}
