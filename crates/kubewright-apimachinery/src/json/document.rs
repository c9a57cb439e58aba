//! JSON documents with field order, duplicate fields and number spelling.
//!
//! Kubernetes reports unknown fields, duplicate fields and the first type error in document order, and quotes
//! numbers as the client wrote them. A [`serde_json::Value`] does not keep this. Use [`Document`] for error
//! messages only.

use serde_json::{Map, Value};

use super::parser::{self, Tree};
use super::{ParseError, ParseOptions};

/// A JSON value with its fields in the order written, repeated fields kept, and numbers as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Document {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number as in the input. It may be out of range for a float.
    Number(String),
    /// A decoded string.
    String(String),
    /// An array.
    Array(Vec<Document>),
    /// An object. Of equal keys the last one wins.
    Object(Vec<(String, Document)>),
}

impl Document {
    /// Parses one JSON value, with the rules of [`super::parse`].
    pub fn parse(bytes: &[u8], options: ParseOptions) -> Result<Self, ParseError> {
        parser::parse(bytes, options).map(|(document, _)| document)
    }

    /// The value type in Go's type errors: `json: cannot unmarshal array into ...`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "bool",
            Self::Number(_) => "number",
            Self::String(_) => "string",
            Self::Array(_) => "array",
            Self::Object(_) => "object",
        }
    }

    /// Converts to the value that [`super::parse`] returns for the same input. Recurses as deep as the
    /// document.
    pub fn to_value(&self) -> Result<Value, ParseError> {
        Ok(match self {
            Self::Null => Value::Null,
            Self::Bool(bool) => Value::Bool(*bool),
            Self::Number(literal) => parser::number(literal)?,
            Self::String(text) => Value::String(text.clone()),
            Self::Array(items) => Value::Array(items.iter().map(Self::to_value).collect::<Result<_, _>>()?),
            Self::Object(fields) => Value::Object(
                fields
                    .iter()
                    .map(|(key, field)| Ok((key.clone(), field.to_value()?)))
                    .collect::<Result<Map<_, _>, ParseError>>()?,
            ),
        })
    }
}

impl Tree for Document {
    type Fields = Vec<(String, Document)>;

    fn null() -> Self {
        Self::Null
    }

    fn bool(bool: bool) -> Self {
        Self::Bool(bool)
    }

    fn number(literal: &str) -> Result<Self, ParseError> {
        Ok(Self::Number(literal.to_owned()))
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

    /// Keeps duplicate fields, so it never reports one.
    fn insert(fields: &mut Self::Fields, key: String, field: Self) -> Option<String> {
        fields.push((key, field));
        None
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn field_order_duplicates_and_number_spelling_are_kept() {
        let document =
            Document::parse(br#"{"b":1.50,"a":[true,null],"b":1e999}"#, ParseOptions::default()).unwrap();
        assert_eq!(
            document,
            Document::Object(vec![
                ("b".to_owned(), Document::Number("1.50".to_owned())),
                ("a".to_owned(), Document::Array(vec![Document::Bool(true), Document::Null])),
                ("b".to_owned(), Document::Number("1e999".to_owned())),
            ])
        );
    }

    #[test]
    fn a_document_converts_to_the_parsed_value() {
        let text = br#"{"b":1,"a":["x",2.5,{}],"b":3}"#;
        let document = Document::parse(text, ParseOptions::default()).unwrap();
        assert_eq!(document.to_value().unwrap(), json!({"a": ["x", 2.5, {}], "b": 3}));
        assert_eq!(document.kind(), "object");
    }

    #[test]
    fn a_number_out_of_range_fails_only_on_conversion() {
        let document = Document::parse(b"[1e999]", ParseOptions::default()).unwrap();
        assert_eq!(
            document.to_value().unwrap_err().to_string(),
            "json: cannot unmarshal number 1e999 into Go value of type float64"
        );
    }
}
