//! Field paths such as `.spec.replicas` or `.spec.labels['a.b']`, resolved in a schema.
//!
//! Used for selectable fields and the `fieldPath` of rules. Paths that do not exist in the schema are
//! rejected.

use serde_json::Value;

use super::schema::{Additional, Schema};
use kubewright_apimachinery::field::Path;

/// Why a path is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldPathError {
    /// The schema has no such field.
    #[error("does not refer to a valid field")]
    NoField,
    /// The path ends where a name is expected.
    #[error("unexpected end of JSON path")]
    End,
    /// `[` where only field names are allowed.
    #[error("array notation is not allowed")]
    Brackets,
    /// An unquoted key in brackets.
    #[error("expected single quoted string but got {0}")]
    Unquoted(String),
    /// An invalid escape in a quoted key.
    #[error("invalid string literal: invalid escape char \\{0}")]
    Escape(char),
    /// An unclosed bracket.
    #[error("expected ] but got {0}")]
    Unclosed(String),
    /// A name where a delimiter is expected.
    #[error("expected [ or . but got: {0}")]
    Undelimited(String),
}

/// A resolved path.
#[derive(Debug, Clone, PartialEq)]
pub struct Found<'a> {
    /// The path in the format of errors.
    pub path: Path,
    /// The schema of the field; `None` for map values without a schema.
    pub schema: Option<&'a Value>,
}

/// Resolves a path of fields and bracketed keys.
pub fn resolve<'a>(path: &str, schema: &'a Value) -> Result<Found<'a>, FieldPathError> {
    walk(path, schema, true)
}

/// Like [`resolve`], but rejects brackets.
pub fn resolve_fields<'a>(path: &str, schema: &'a Value) -> Result<Found<'a>, FieldPathError> {
    walk(path, schema, false)
}

fn walk<'a>(path: &str, schema: &'a Value, brackets: bool) -> Result<Found<'a>, FieldPathError> {
    let mut tokens = Tokens(path);
    let mut found = Found { path: Path::root(), schema: Some(schema) };
    while let Some(token) = tokens.next() {
        match token {
            "[" if !brackets => return Err(FieldPathError::Brackets),
            "[" => {
                let key = tokens.next().ok_or(FieldPathError::End)?;
                let quoted = key.strip_prefix('\'').and_then(|key| key.strip_suffix('\''));
                let key = quoted.ok_or_else(|| FieldPathError::Unquoted(key.to_owned()))?;
                found = step(&found, &unescape(key)?)?;
                match tokens.next() {
                    None => return Err(FieldPathError::End),
                    Some("]") => {}
                    Some(other) => return Err(FieldPathError::Unclosed(other.to_owned())),
                }
            }
            "." => found = step(&found, tokens.next().ok_or(FieldPathError::End)?)?,
            other => return Err(FieldPathError::Undelimited(other.to_owned())),
        }
    }
    Ok(found)
}

fn step<'a>(found: &Found<'a>, name: &str) -> Result<Found<'a>, FieldPathError> {
    let schema = found.schema.map(Schema).ok_or(FieldPathError::NoField)?;
    if !schema.map("properties").is_empty() {
        let property = schema.property(name).ok_or(FieldPathError::NoField)?;
        return Ok(Found { path: found.path.child(name), schema: Some(property.0) });
    }
    match schema.additional_properties() {
        Some(additional) => Ok(Found {
            path: found.path.key(name),
            schema: match additional {
                Additional::Schema(schema) => Some(schema.0),
                Additional::Allowed(_) => None,
            },
        }),
        None => Err(FieldPathError::NoField),
    }
}

/// Delimiters, quoted keys and names.
struct Tokens<'a>(&'a str);

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let text = self.0;
        let first = text.chars().next()?;
        let end = match first {
            '.' | '[' | ']' => 1,
            '\'' => {
                let bytes = text.as_bytes();
                let close = (1..bytes.len()).find(|i| bytes[*i] == b'\'' && bytes[i - 1] != b'\\');
                close.map_or(text.len(), |close| close + 1)
            }
            _ => text.find(['.', '[', ']']).unwrap_or(text.len()),
        };
        let (token, rest) = text.split_at(end);
        self.0 = rest;
        Some(token)
    }
}

fn unescape(text: &str) -> Result<String, FieldPathError> {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let escaped = if c == '\\' { chars.next() } else { None };
        plain.push(match escaped {
            None => c,
            Some('a') => '\u{7}',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('v') => '\u{b}',
            Some(c @ ('\'' | '\\')) => c,
            Some(c) => return Err(FieldPathError::Escape(c)),
        });
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn text(path: &str) -> String {
        let schema = json!({"properties": {"spec": {"properties": {
            "a": {"type": "string"},
            "m": {"additionalProperties": {"type": "integer"}}
        }}}});
        match resolve(path, &schema) {
            Ok(found) => format!("{} {}", found.path, found.schema.unwrap_or(&Value::Null)),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_path_resolves_to_the_schema_of_its_field() {
        assert_eq!(text(".spec.a"), r#"spec.a {"type":"string"}"#);
        assert_eq!(text("['spec'].a"), r#"spec.a {"type":"string"}"#);
        assert_eq!(text(".spec.m['x.y']"), r#"spec.m[x.y] {"type":"integer"}"#);
        assert_eq!(text(r".spec.m['x\'y']"), r#"spec.m[x'y] {"type":"integer"}"#);
    }

    #[test]
    fn paths_outside_the_schema_are_rejected() {
        assert_eq!(text(".spec.b"), "does not refer to a valid field");
        assert_eq!(text(".spec.a.b"), "does not refer to a valid field");
        assert_eq!(text("spec"), "expected [ or . but got: spec");
        assert_eq!(text("."), "unexpected end of JSON path");
        assert_eq!(text(".spec[0]"), "expected single quoted string but got 0");
        assert_eq!(text(".spec['a'"), "unexpected end of JSON path");
        assert_eq!(text(".spec['a'.b"), "expected ] but got .");
        assert_eq!(text(r"['\x']"), r"invalid string literal: invalid escape char \x");
        let schema = json!({"properties": {"a": {}}});
        assert_eq!(resolve_fields("['a']", &schema), Err(FieldPathError::Brackets));
    }
}
