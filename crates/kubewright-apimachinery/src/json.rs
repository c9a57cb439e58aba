//! JSON parsing and serialization compatible with Kubernetes.
//!
//! [`parse`] behaves like `sigs.k8s.io/json`: the last of several equal keys wins, and all duplicates are
//! reported; integers stay integers if they fit an `i64`; invalid UTF-8 becomes U+FFFD; syntax errors have
//! the text of Go's `encoding/json`, because clients see it. [`Document`] keeps the original field order, for
//! errors that depend on it. [`to_string`] formats numbers and escapes like Go.
//!
//! Parsing does not recurse; [`ParseOptions::max_depth`] limits the nesting. This module has no notion of
//! schemas.

mod document;
mod parser;
mod quote;
mod write;

use serde_json::Value;

pub use document::Document;
pub use quote::quote;
pub use write::{to_string, to_vec, write_to, write_with_text};
pub use write::{write_escaped, write_string};

/// Default nesting limit. Upstream allows 10,000. Dropping, cloning and writing a [`Value`] recurse, and this
/// limit fits the smallest stack we run on in a debug build. See docs/differences.md.
pub const MAX_DEPTH: usize = 400;

/// Maximum number of strict errors that upstream collects.
pub const MAX_STRICT_ERRORS: usize = 100;

/// Options of [`parse`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParseOptions {
    /// Maximum nesting depth, [`MAX_DEPTH`] by default. Dropping, cloning and comparing a [`Value`] recurse,
    /// so callers on a small stack may need a lower limit.
    pub max_depth: usize,
    /// Objects at this path are kept as strings. The path consists of field names, and `[]` for list items.
    /// Their content is not checked, so use this only for output of [`to_string`]. [`write_with_text`] is the
    /// inverse.
    pub text_at: &'static [&'static str],
}

impl Default for ParseOptions {
    fn default() -> Self {
        Self { max_depth: MAX_DEPTH, text_at: &[] }
    }
}

/// The result of [`parse`].
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    /// The value. Of duplicate fields it contains the last one.
    pub value: Value,
    /// The paths of duplicate fields, such as `spec.containers[0].name`, in document order, without
    /// repetitions, at most [`MAX_STRICT_ERRORS`].
    pub duplicates: Vec<String>,
}

impl Parsed {
    /// The duplicates as error messages: `duplicate field "spec.replicas"`.
    pub fn strict_errors(&self) -> impl Iterator<Item = String> + '_ {
        self.duplicates.iter().map(|path| format!("duplicate field {}", quote(path)))
    }
}

/// Why [`parse`] failed. The texts are upstream's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The input is not valid JSON.
    #[error("{message}")]
    Syntax {
        /// The problem and its syntactic context.
        message: String,
        /// The number of bytes before the invalid one.
        offset: usize,
    },
    /// A number is out of range for `f64`.
    #[error("json: cannot unmarshal number {literal} into Go value of type float64")]
    Number {
        /// The number as in the input.
        literal: String,
    },
}

/// Parses one JSON value. Only white space may follow it.
pub fn parse(bytes: &[u8], options: ParseOptions) -> Result<Parsed, ParseError> {
    let (value, duplicates) = parser::parse(bytes, options)?;
    Ok(Parsed { value, duplicates })
}

/// Whether a value nests deeper than `levels`. A scalar has depth 0, a list or object one more than its
/// deepest element.
pub fn is_deeper_than(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels == 0 || items.iter().any(|item| is_deeper_than(item, levels - 1)),
        Value::Object(fields) => {
            levels == 0 || fields.values().any(|value| is_deeper_than(value, levels - 1))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn value(text: &str) -> Value {
        parse(text.as_bytes(), ParseOptions::default()).expect(text).value
    }

    fn duplicates(text: &str) -> Vec<String> {
        parse(text.as_bytes(), ParseOptions::default()).expect(text).duplicates
    }

    fn error(bytes: impl AsRef<[u8]>) -> String {
        parse(bytes.as_ref(), ParseOptions::default()).expect_err("the input is wrong").to_string()
    }

    #[test]
    fn values_of_every_type_are_parsed() {
        assert_eq!(
            value(" {\"a\" : [1, -2.5, true,false , null,\"x\"],\t\"b\":{ }, \"c\":[ ]}\r\n"),
            json!({"a": [1, -2.5, true, false, null, "x"], "b": {}, "c": []})
        );
    }

    #[test]
    fn integers_stay_integers_if_they_fit_an_i64() {
        assert_eq!(value("9223372036854775807"), json!(i64::MAX));
        assert_eq!(value("-9223372036854775808"), json!(i64::MIN));
        assert_eq!(value("-0"), json!(0));
        assert!(value("9223372036854775808").is_f64());
        assert!(value("-9223372036854775809").is_f64());
        assert!(value("1e3").is_f64());
        assert!(value("1.0").is_f64());
    }

    #[test]
    fn a_number_out_of_range_is_reported_only_if_the_syntax_is_valid() {
        assert_eq!(error("[1e999]"), "json: cannot unmarshal number 1e999 into Go value of type float64");
        assert_eq!(
            error("[1e999,-1e400]"),
            "json: cannot unmarshal number 1e999 into Go value of type float64"
        );
        assert_eq!(error("[1e999"), "unexpected end of JSON input");
        assert_eq!(value("1e-999"), json!(0.0));
    }

    #[test]
    fn the_last_duplicate_field_wins_and_each_is_reported_once() {
        let text = r#"{"spec":{"a":1,"a":2,"a":3},"kind":"x"}"#;
        assert_eq!(value(text), json!({"spec": {"a": 3}, "kind": "x"}));
        assert_eq!(duplicates(text), ["spec.a"]);
    }

    #[test]
    fn duplicate_fields_are_reported_with_their_path_in_document_order() {
        assert_eq!(
            duplicates(r#"{"s":{"c":[{},{"n":1,"n":1}],"x":1},"s":{"y":1,"y":2},"k":1,"k":1}"#),
            ["s.c[1].n", "s", "s.y", "k"]
        );
        assert_eq!(duplicates(r#"[[{"a":1,"a":1}]]"#), ["[0][0].a"]);
    }

    #[test]
    fn strict_errors_quote_the_path_like_in_go() {
        let parsed = parse(br#"{"a":{"x\"y":1,"x\"y":2}}"#, ParseOptions::default()).unwrap();
        assert_eq!(parsed.strict_errors().collect::<Vec<_>>(), [r#"duplicate field "a.x\"y""#]);
    }

    #[test]
    fn at_most_a_hundred_duplicate_fields_are_reported() {
        let fields: Vec<String> = (0..150).map(|i| format!("\"f{i}\":1,\"f{i}\":1")).collect();
        assert_eq!(duplicates(&format!("{{{}}}", fields.join(","))).len(), MAX_STRICT_ERRORS);
    }

    #[test]
    fn escapes_are_decoded() {
        assert_eq!(value(r#""\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00""#), json!("\"\\/\u{8}\u{c}\n\r\té😀"));
        assert_eq!(value(r#"{"\u0061\n":1}"#), json!({"a\n": 1}));
    }

    #[test]
    fn lone_surrogates_become_the_replacement_character() {
        assert_eq!(value(r#""\ud83dx""#), json!("\u{fffd}x"));
        assert_eq!(value(r#""\ude00""#), json!("\u{fffd}"));
        assert_eq!(value(r#""\ud83d\ud83d\ude00""#), json!("\u{fffd}😀"));
        assert_eq!(value(r#""\ud83d\n""#), json!("\u{fffd}\n"));
    }

    #[test]
    fn every_invalid_utf8_byte_becomes_one_replacement_character() {
        let read = |bytes: &[u8]| parse(bytes, ParseOptions::default()).unwrap().value;
        assert_eq!(read(b"\"a\xe2\x82z\""), json!("a\u{fffd}\u{fffd}z"));
        assert_eq!(read(b"\"\\n\xff\xc3\xa9\""), json!("\n\u{fffd}é"));
        assert_eq!(read(b"{\"\xff\":1}"), json!({"\u{fffd}": 1}));
    }

    #[test]
    fn syntax_errors_have_gos_text() {
        for (text, message) in [
            ("", "unexpected end of JSON input"),
            ("  ", "unexpected end of JSON input"),
            ("{", "unexpected end of JSON input"),
            ("[", "unexpected end of JSON input"),
            ("{\"a\"", "unexpected end of JSON input"),
            ("{\"a\":", "unexpected end of JSON input"),
            ("{\"a\":1", "unexpected end of JSON input"),
            ("[1,", "unexpected end of JSON input"),
            ("\"a", "unexpected end of JSON input"),
            ("not json", "invalid character 'o' in literal null (expecting 'u')"),
            ("nulL", "invalid character 'L' in literal null (expecting 'l')"),
            ("trap", "invalid character 'a' in literal true (expecting 'u')"),
            ("tru", "invalid character ' ' in literal true (expecting 'e')"),
            ("fals3", "invalid character '3' in literal false (expecting 'e')"),
            ("{\"a\":}", "invalid character '}' looking for beginning of value"),
            ("[1,]", "invalid character ']' looking for beginning of value"),
            ("x", "invalid character 'x' looking for beginning of value"),
            ("+1", "invalid character '+' looking for beginning of value"),
            ("{1:2}", "invalid character '1' looking for beginning of object key string"),
            ("{\"a\":1,}", "invalid character '}' looking for beginning of object key string"),
            ("{\"a\" 1}", "invalid character '1' after object key"),
            ("{\"a\":1 b", "invalid character 'b' after object key:value pair"),
            ("[1 2]", "invalid character '2' after array element"),
            ("[01]", "invalid character '1' after array element"),
            ("{}{}", "invalid character '{' after top-level value"),
            ("1 x", "invalid character 'x' after top-level value"),
            ("-", "invalid character ' ' in numeric literal"),
            ("-x", "invalid character 'x' in numeric literal"),
            ("1.", "invalid character ' ' after decimal point in numeric literal"),
            ("1.e1", "invalid character 'e' after decimal point in numeric literal"),
            ("1e", "invalid character ' ' in exponent of numeric literal"),
            ("1e+x", "invalid character 'x' in exponent of numeric literal"),
            ("\"\n\"", "invalid character '\\n' in string literal"),
            ("\"\u{1}\"", "invalid character '\\x01' in string literal"),
            ("\"\\x\"", "invalid character 'x' in string escape code"),
            ("\"\\'\"", "invalid character '\\'' in string escape code"),
            ("\"\\", "invalid character ' ' in string escape code"),
            ("\"\\u12", "invalid character ' ' in \\u hexadecimal character escape"),
            ("\"\\u12g4\"", "invalid character 'g' in \\u hexadecimal character escape"),
            ("\"\\u12\"", "invalid character '\"' in \\u hexadecimal character escape"),
            ("'a'", "invalid character '\\'' looking for beginning of value"),
            ("[\"a\"\"b\"]", "invalid character '\"' after array element"),
            ("\\", "invalid character '\\\\' looking for beginning of value"),
            ("\u{feff}{}", "invalid character 'ï' looking for beginning of value"),
        ] {
            assert_eq!(error(text), message, "{text:?}");
        }
        assert_eq!(error(b"\x80"), "invalid character '\\u0080' looking for beginning of value");
        assert_eq!(error(b"\x00"), "invalid character '\\x00' looking for beginning of value");
    }

    #[test]
    fn objects_at_the_text_path_are_kept_as_text() {
        const AT: &[&str] = &["a", "[]", "b"];
        let text = r#"{"a":[{"b":{"x":"}\"","y":[{}]},"c":{}},{"b":7}],"b":{"b":{}}}"#;
        let options = ParseOptions { text_at: AT, ..ParseOptions::default() };
        let value = parse(text.as_bytes(), options).unwrap().value;
        assert_eq!(
            value,
            json!({"a": [{"b": r#"{"x":"}\"","y":[{}]}"#, "c": {}}, {"b": 7}], "b": {"b": {}}})
        );
        let mut written = Vec::new();
        write_with_text(&mut written, &value, AT);
        assert_eq!(String::from_utf8(written).unwrap(), text);
    }

    #[test]
    fn syntax_errors_have_an_offset() {
        let error = parse(b"{\"a\": x}", ParseOptions::default()).unwrap_err();
        assert!(matches!(error, ParseError::Syntax { offset: 6, .. }), "{error:?}");
    }

    #[test]
    fn nesting_is_limited_and_costs_no_stack() {
        let nested = |depth: usize| [vec![b'['; depth], vec![b']'; depth]].concat();
        let options = ParseOptions { max_depth: 200, ..ParseOptions::default() };
        assert!(parse(&nested(200), options).is_ok());
        assert_eq!(
            parse(&nested(201), options).unwrap_err().to_string(),
            "invalid character '[' exceeded max depth"
        );
        assert_eq!(error("{\"a\":".repeat(10_001)), "invalid character '{' exceeded max depth");
        assert_eq!(error("[".repeat(5_000_000)), "invalid character '[' exceeded max depth");
    }

    /// JSON that serde_json and [`parse`] read alike: no integers beyond `i64`, which Go converts to floats,
    /// and only floats that serde_json parses exactly.
    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            (1..1_000_000_i32).prop_map(|n| Value::from(f64::from(n) / 64.0)),
            ".*".prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 64, 8, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
                prop::collection::btree_map(".{0,6}", inner, 0..8)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn valid_input_is_parsed_like_in_serde_json(value in any_json()) {
            let pretty = serde_json::to_string_pretty(&value).unwrap();
            let reference: Value = serde_json::from_str(&pretty).unwrap();
            let parsed = parse(pretty.as_bytes(), ParseOptions::default()).unwrap();
            prop_assert_eq!(&parsed.value, &reference);
            prop_assert!(parsed.duplicates.is_empty());
        }

        #[test]
        fn output_round_trips(value in any_json()) {
            let text = to_string(&value);
            let once = parse(text.as_bytes(), ParseOptions::default()).unwrap().value;
            prop_assert_eq!(to_string(&once), text);
        }

        #[test]
        fn every_float_round_trips(float in any::<f64>()) {
            prop_assume!(float.is_finite());
            let text = to_string(&Value::from(float));
            let read = parse(text.as_bytes(), ParseOptions::default()).unwrap().value;
            prop_assert_eq!(read.as_f64(), Some(float));
        }

        #[test]
        fn parse_and_serde_json_agree_on_validity(
            bytes in "[\\[\\]{}:,\"a\\\\u0-9eE.+ -]{0,12}|(true|false|null|[\\[\\], ]){0,4}",
        ) {
            let ours = parse(bytes.as_bytes(), ParseOptions::default());
            let theirs = serde_json::from_str::<Value>(&bytes);
            // serde_json rejects lone surrogates; Go replaces them.
            if !bytes.contains("\\u") {
                prop_assert_eq!(ours.is_ok(), theirs.is_ok(), "{:?} {:?}", ours, theirs);
            }
        }

        #[test]
        fn no_input_panics(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = parse(&bytes, ParseOptions::default());
        }
    }
}
