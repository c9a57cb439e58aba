//! JSONPath for printer columns and selectable fields: the language of `kubectl -o jsonpath`, limited to one
//! expression without braces.
//!
//! Missing fields are not errors; they have no value. `range` and `end` have no effect. No crate is used, because those
//! for Rust implement RFC 9535, whose syntax and results differ from kubectl's.

mod find;
mod parser;

use serde_json::Value;

pub use find::FindError;
pub use parser::ParseError;

use kubewright_apimachinery::json;

/// A parsed path.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonPath(Vec<Node>);

/// A step of a path.
#[derive(Debug, Clone, PartialEq)]
enum Node {
    /// A quoted literal.
    Text(String),
    Integer(i64),
    Number(f64),
    Bool(bool),
    /// `.name`
    Field(String),
    /// `.*`
    Wildcard,
    /// `..`
    Recursive,
    /// `[from:to:step]`
    Slice(Slice),
    /// `[a,b]`
    Union(Vec<Vec<Node>>),
    /// `[?(left operator right)]`
    Filter {
        left: Vec<Node>,
        operator: String,
        right: Vec<Node>,
    },
    /// An unquoted identifier.
    Identifier(String),
}

/// The bounds of a slice, as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slice {
    from: Option<i64>,
    to: Option<i64>,
    /// `to` was omitted and selects a single item.
    single: bool,
    step: Option<i64>,
}

impl JsonPath {
    /// Parses a path such as `.spec.replicas`.
    pub fn parse(path: &str) -> Result<Self, ParseError> {
        parser::parse(path).map(Self)
    }

    /// The names of the fields that the path starts with. Other steps can select anything below them.
    pub(crate) fn fields(&self) -> Vec<&str> {
        let fields = self.0.iter().map_while(|node| match node {
            Node::Field(name) => Some(name.as_str()),
            _ => None,
        });
        fields.collect()
    }

    /// Evaluates the path on an object. Returns all matching values.
    pub fn find<'a>(&self, object: &'a Value) -> Result<Vec<&'a Value>, FindError> {
        // Literals are not part of the object and are dropped.
        let found = find::find(&self.0, object)?;
        Ok(found.into_iter().filter_map(find::Found::in_object).collect())
    }
}

/// Formats a value like kubectl.
pub fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "<no value>".to_owned(),
        Value::Number(number) if number.is_f64() => float(number.as_f64().unwrap_or_default()),
        other => json::to_string(other),
    }
}

/// Formats a number like Go's `%v`.
fn float(number: f64) -> String {
    let plain = format!("{number}");
    let scientific = format!("{number:e}");
    let exponent: i32 = scientific.rsplit_once('e').and_then(|(_, e)| e.parse().ok()).unwrap_or_default();
    if number == 0.0 || (-4..21).contains(&exponent) {
        return plain;
    }
    let mantissa = scientific.rsplit_once('e').map_or("", |(mantissa, _)| mantissa);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn found(path: &str) -> String {
        let object = json!({
            "spec": {
                "a": "x", "n": 3, "f": 1.5, "big": 1e21, "none": null, "dotted.name": "d", "l": ["p", "q", "r"],
                "o": {"k": "v"}
            },
            "status": {"conditions": [
                {"type": "Ready", "status": "True", "n": 1},
                {"type": "Other", "status": "False", "n": 2}
            ]}
        });
        match JsonPath::parse(path) {
            Err(error) => format!("parse: {error}"),
            Ok(path) => match path.find(&object) {
                Err(error) => format!("find: {error}"),
                Ok(found) => found.into_iter().map(text).collect::<Vec<_>>().join(" "),
            },
        }
    }

    #[test]
    fn paths_select_values() {
        for (path, expected) in [
            (".spec.a", "x"),
            (".spec.n", "3"),
            (".spec.f", "1.5"),
            (".spec.big", "1e+21"),
            (".spec.none", "<no value>"),
            (".spec.nosuch.deeper", ""),
            (".spec.a.b", ""),
            ("$.spec.a", "x"),
            (r".spec.dotted\.name", "d"),
            (".spec['a']", "x"),
            (r".spec['dotted\.name']", "d"),
            (".spec.l", r#"["p","q","r"]"#),
            (".spec.o", r#"{"k":"v"}"#),
            (".spec.l[0]", "p"),
            (".spec.l[-1]", "r"),
            (".spec.l[1:]", "q r"),
            (".spec.l[0:3:2]", "p r"),
            (".spec.l[*]", "p q r"),
            (".spec.l[0,2]", "p r"),
            (".spec.o.*", "v"),
            ("..k", "v"),
            (r#".status.conditions[?(@.type=="Ready")].status"#, "True"),
            (r".status.conditions[?(@.type=='Other')].status", "False"),
            (".status.conditions[?(@.n>1)].type", "Other"),
            (".status.conditions[?(@.n)].type", "Ready Other"),
            (".status.conditions[?(@.nosuch)].type", ""),
            (".status.conditions[?(@.nosuch==1)].type", ""),
        ] {
            assert_eq!(found(path), expected, "{path}");
        }
    }

    #[test]
    fn invalid_paths_are_errors() {
        assert_eq!(found(".spec.l[9]"), "find: array index out of bounds: index 9, length 3");
        assert_eq!(found(".spec.a[0]"), "find: not an array");
        assert_eq!(found(".spec.l[x]"), "parse: invalid array index x");
        assert_eq!(found(".spec.l[0"), "parse: unterminated array");
        assert_eq!(found(".spec.&"), "");
        assert_eq!(found("&"), "parse: unrecognized character in action: '&'");
        assert_eq!(found(".status.conditions[?(@.type==1)]"), "find: incompatible types for comparison");
        assert_eq!(found("range"), "find: unrecognized identifier range");
    }

    proptest::proptest! {
        #[test]
        fn a_path_of_fields_selects_the_value(names in proptest::collection::vec("[a-z.]{1,5}", 1..4), value: i64) {
            let mut object = json!(value);
            for name in names.iter().rev() {
                object = json!({name.as_str(): object});
            }
            let fields: Vec<String> = names.iter().map(|name| name.replace('.', "\\.")).collect();
            let path = JsonPath::parse(&format!(".{}", fields.join("."))).expect("a path of fields is valid");
            let expected = json!(value);
            proptest::prop_assert_eq!(path.find(&object), Ok(vec![&expected]));
        }

        #[test]
        fn no_path_panics(text: String) {
            if let Ok(path) = JsonPath::parse(&text) {
                let _ = path.find(&json!({"a": [{"b": 1}, null, "x"], "c": {"d": true}}));
            }
        }
    }
}
