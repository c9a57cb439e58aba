//! Path elements: identify a field, map entry or list item.
//!
//! Owns the order of elements, which is the order of field sets, and their encodings in `fieldsV1` and in
//! messages. Numbers compare by value: `80` equals `80.0`.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use serde_json::{Number, Value};

use kubewright_apimachinery::field::quote;
use kubewright_apimachinery::json;

/// One step of a path into an object.
#[derive(Debug, Clone)]
pub enum Element {
    /// A field of an object, or an entry of a map.
    Field(Name),
    /// The item of an associative list with these key fields, sorted by name.
    Key(Arc<[(Box<str>, Value)]>),
    /// The item of a set with this value.
    Value(Arc<Value>),
    /// The list item at this index.
    Index(i64),
}

/// The name of a field.
#[derive(Debug, Clone)]
pub enum Name {
    /// A field of a built-in type.
    Known(&'static str),
    /// Any other field.
    Other(Arc<str>),
}

impl std::ops::Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Known(name) => name,
            Self::Other(name) => name,
        }
    }
}

/// An invalid path element.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ElementError {
    /// Too short for a prefix and a colon.
    #[error("key must be 2 characters long:")]
    Short,
    /// The second character is not a colon.
    #[error("missing colon: {0}")]
    Colon(String),
    /// An invalid index, or invalid JSON in a value or key.
    #[error("{0}")]
    Content(String),
    /// An unknown prefix, possibly of a later version. Decoders skip it.
    #[error("unknown path element type")]
    Unknown,
}

impl Element {
    /// The field `name`.
    pub fn field(name: &str) -> Self {
        Self::Field(Name::Other(name.into()))
    }

    /// The field `name` of a built-in type.
    pub(crate) fn known(name: &'static str) -> Self {
        Self::Field(Name::Known(name))
    }

    /// The list item with these key fields.
    pub fn key(mut fields: Vec<(Box<str>, Value)>) -> Self {
        fields.sort_by(|a, b| a.0.cmp(&b.0));
        Self::Key(fields.into())
    }

    /// Parses an element of `fieldsV1`: `f:spec`, `k:{"name":"a"}`, `v:"x"`, `i:0`.
    pub fn parse(text: &str) -> Result<Self, ElementError> {
        let bytes = text.as_bytes();
        if bytes.len() < 2 {
            return Err(ElementError::Short);
        }
        if bytes[1] != b':' {
            return Err(ElementError::Colon(text.to_owned()));
        }
        let content = &text[2..];
        match bytes[0] {
            b'f' => Ok(Self::field(content)),
            b'v' => Ok(Self::Value(Arc::new(parse_json(content)?))),
            b'k' => match parse_json(content)? {
                Value::Object(map) => {
                    Ok(Self::key(map.into_iter().map(|(name, value)| (name.into(), value)).collect()))
                }
                _ => Err(ElementError::Content("expected an object".to_owned())),
            },
            b'i' => content.parse().map(Self::Index).map_err(|_| {
                ElementError::Content(format!("strconv.Atoi: parsing {}: invalid syntax", quote(content)))
            }),
            _ => Err(ElementError::Unknown),
        }
    }

    /// Encodes the element for `fieldsV1`.
    pub fn encode(&self) -> String {
        match self {
            Self::Field(name) => {
                let mut text = String::with_capacity(name.len() + 2);
                text.push_str("f:");
                text.push_str(name);
                text
            }
            Self::Key(fields) => {
                let mut text = String::from("k:{");
                for (index, (name, value)) in fields.iter().enumerate() {
                    if index > 0 {
                        text.push(',');
                    }
                    text.push_str(&json::to_string(&(**name).into()));
                    text.push(':');
                    text.push_str(&json::to_string(value));
                }
                text.push('}');
                text
            }
            Self::Value(value) => format!("v:{}", json::to_string(value)),
            Self::Index(index) => format!("i:{index}"),
        }
    }

    /// Compares this element with the field `name`.
    pub(crate) fn cmp_field(&self, name: &str) -> Ordering {
        match self {
            Self::Field(own) => (**own).cmp(name),
            _ => Ordering::Greater,
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }
}

impl Ord for Element {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(a), Self::Field(b)) => (**a).cmp(&**b),
            (Self::Key(a), Self::Key(b)) => a
                .iter()
                .zip(b.iter())
                .map(|(a, b)| a.0.cmp(&b.0).then_with(|| compare(&a.1, &b.1)))
                .find(|order| order.is_ne())
                .unwrap_or_else(|| a.len().cmp(&b.len())),
            (Self::Value(a), Self::Value(b)) => compare(a, b),
            (Self::Index(a), Self::Index(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Element {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Element {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Element {}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{}", &**name),
            Self::Key(fields) => {
                f.write_str("[")?;
                for (index, (name, value)) in fields.iter().enumerate() {
                    if index > 0 {
                        f.write_str(",")?;
                    }
                    write!(f, "{name}={}", printed(value))?;
                }
                f.write_str("]")
            }
            Self::Value(value) => write!(f, "[={}]", printed(value)),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

fn parse_json(text: &str) -> Result<Value, ElementError> {
    serde_json::from_str(text).map_err(|error| ElementError::Content(error.to_string()))
}

/// A value in the notation of messages.
fn printed(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => go_number(number),
        Value::String(text) => quote(text),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(printed).collect::<Vec<_>>().join(","))
        }
        Value::Object(map) => {
            let fields = map.iter().map(|(name, value)| format!("{name}={}", printed(value)));
            fields.collect::<Vec<_>>().concat()
        }
    }
}

/// A number as Go prints a float64 with `%v`, because upstream decodes set numbers to float64.
pub(crate) fn go_number(number: &Number) -> String {
    let value = number.as_f64().unwrap_or_default();
    let scientific = format!("{value:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    // Go's `%g` switches to an exponent here.
    if !(-4..6).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.abs());
    }
    value.to_string()
}

/// Equality of values in server-side apply: numbers compare by value.
pub(crate) fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b).is_eq(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| equal(a, b)))
        }
        _ => a == b,
    }
}

/// A total order of values: numbers, strings, bools, lists, maps, null.
pub(crate) fn compare(a: &Value, b: &Value) -> Ordering {
    fn rank(value: &Value) -> u8 {
        match value {
            Value::Number(_) => 0,
            Value::String(_) => 1,
            Value::Bool(_) => 2,
            Value::Array(_) => 3,
            Value::Object(_) => 4,
            Value::Null => 5,
        }
    }
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => a
            .iter()
            .zip(b)
            .map(|(a, b)| compare(a, b))
            .find(|order| order.is_ne())
            .unwrap_or_else(|| a.len().cmp(&b.len())),
        (Value::Object(a), Value::Object(b)) => {
            let (mut left, mut right): (Vec<_>, Vec<_>) = (a.iter().collect(), b.iter().collect());
            left.sort_by_key(|(name, _)| *name);
            right.sort_by_key(|(name, _)| *name);
            left.iter()
                .zip(&right)
                .map(|(a, b)| a.0.cmp(b.0).then_with(|| compare(a.1, b.1)))
                .find(|order| order.is_ne())
                .unwrap_or_else(|| left.len().cmp(&right.len()))
        }
        _ => rank(a).cmp(&rank(b)),
    }
}

fn compare_numbers(a: &Number, b: &Number) -> Ordering {
    match (a.as_i64(), b.as_i64()) {
        (Some(a), Some(b)) => a.cmp(&b),
        _ => a.as_f64().unwrap_or_default().total_cmp(&b.as_f64().unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn elements_round_trip() {
        for text in [
            "f:spec",
            "f:a.b/c",
            r#"k:{"containerPort":80,"protocol":"TCP"}"#,
            r#"v:"x""#,
            "v:1.5",
            "i:3",
            "f:",
        ] {
            assert_eq!(Element::parse(text).unwrap().encode(), text);
        }
        assert_eq!(Element::parse("q:x"), Err(ElementError::Unknown));
        assert_eq!(Element::parse("."), Err(ElementError::Short));
        assert_eq!(Element::parse("fx"), Err(ElementError::Colon("fx".to_owned())));
    }

    #[test]
    fn elements_have_a_readable_notation_in_messages() {
        let key = Element::key(vec![("protocol".into(), json!("TCP")), ("port".into(), json!(80))]);
        assert_eq!(key.to_string(), r#"[port=80,protocol="TCP"]"#);
        assert_eq!(Element::Value(Arc::new(json!("x"))).to_string(), r#"[="x"]"#);
        assert_eq!(Element::field("a").to_string(), ".a");
        let big = Element::Value(Arc::new(json!(1_234_567)));
        assert_eq!(big.to_string(), "[=1.234567e+06]");
    }

    #[test]
    fn numbers_are_equal_by_value() {
        let (a, b) = (Element::Value(Arc::new(json!(80))), Element::Value(Arc::new(json!(80.0))));
        assert_eq!(a, b);
        assert!(equal(&json!({"a": [1]}), &json!({"a": [1.0]})));
        assert!(!equal(&json!(1), &json!("1")));
    }

    #[test]
    fn fields_sort_before_keys_values_and_indices() {
        let texts =
            ["f:a", "f:b", r#"k:{"a":1}"#, r#"k:{"a":1,"b":1}"#, r#"k:{"a":2}"#, "v:1", r#"v:"a""#, "i:0"];
        let elements: Vec<_> = texts.iter().map(|text| Element::parse(text).unwrap()).collect();
        assert!(elements.is_sorted());
    }
}
