//! Label selectors, as JSON in a string or as a literal.
//!
//! Applies the API server's validation of LabelSelector. Errors in a literal point at the token, errors in a
//! string at the string.

use proc_macro2::Span;
use serde_json::Value as Json;

use crate::arguments::{Arguments, Value, Word};
use crate::names::{is_label_value, is_qualified_name};
use crate::nearest::did_you_mean;

const OPERATORS: &[&str] = &["In", "NotIn", "Exists", "DoesNotExist"];

/// Returns the selector as JSON, or `None` if it is invalid.
pub(super) fn read(arguments: &mut Arguments, value: Value) -> Option<String> {
    let value = match value {
        Value::Text(Word { text, span }) => match serde_json::from_str(&text) {
            Ok(json) => at(span, json),
            Err(error) => {
                arguments.wrong(span, format!("invalid JSON: {error}"));
                return None;
            }
        },
        other => other,
    };
    check(arguments, &value);
    json(&value).map(|json| json.to_string())
}

/// Converts JSON to a [`Value`] whose parts all have the same span.
fn at(span: Span, json: Json) -> Value {
    match json {
        Json::Null => Value::Word(Word { text: "null".to_owned(), span }),
        Json::Bool(flag) => Value::Flag(flag, span),
        Json::Number(number) => Value::Number(number.as_i64().unwrap_or_default(), span),
        Json::String(text) => Value::Text(Word { text, span }),
        Json::Array(items) => Value::List(items.into_iter().map(|item| at(span, item)).collect(), span),
        Json::Object(members) => {
            let member = |(text, value)| (Word { text, span }, at(span, value));
            Value::Map(members.into_iter().map(member).collect(), span)
        }
    }
}

/// Converts a [`Value`] to JSON. Selectors contain only strings, lists and maps.
fn json(value: &Value) -> Option<Json> {
    match value {
        Value::Text(word) => Some(Json::from(word.text.clone())),
        Value::List(items, _) => items.iter().map(json).collect(),
        Value::Map(members, _) => {
            members.iter().map(|(key, value)| Some((key.text.clone(), json(value)?))).collect()
        }
        _ => None,
    }
}

fn check(arguments: &mut Arguments, selector: &Value) {
    let Value::Map(members, _) = selector else {
        let what =
            "a selector must be a map such as `{ matchLabels: { \"app\": \"web\" } }`, or JSON in a string";
        return arguments.wrong(selector.span(), what);
    };
    for (key, value) in members {
        match (key.text.as_str(), value) {
            ("matchLabels", Value::Map(labels, _)) => {
                for (label, value) in labels {
                    check_key(arguments, label);
                    check_value(arguments, value);
                }
            }
            ("matchLabels", other) => {
                arguments.wrong(other.span(), "`matchLabels` must be a map such as `{ \"app\": \"web\" }`");
            }
            ("matchExpressions", Value::List(expressions, _)) => {
                for expression in expressions {
                    check_expression(arguments, expression);
                }
            }
            ("matchExpressions", other) => arguments.wrong(
                other.span(),
                "`matchExpressions` must be a list such as `[{ key: \"app\", operator: \"Exists\" }]`",
            ),
            (unknown, _) => {
                let near = match did_you_mean(unknown, ["matchLabels", "matchExpressions"]) {
                    near if near.is_empty() => {
                        "; selectors have `matchLabels` and `matchExpressions`".to_owned()
                    }
                    near => near,
                };
                arguments.wrong(key.span, format!("unknown field `{unknown}`{near}"));
            }
        }
    }
}

fn check_expression(arguments: &mut Arguments, expression: &Value) {
    let Value::Map(members, span) = expression else {
        return arguments.wrong(
            expression.span(),
            "an expression must be a map such as `{ key: \"app\", operator: \"Exists\" }`",
        );
    };
    let (mut key, mut operator, mut values) = (None, None, None);
    for (name, value) in members {
        match (name.text.as_str(), value) {
            ("key", Value::Text(word)) => key = Some(word),
            ("operator", Value::Text(word) | Value::Word(word)) => operator = Some(word),
            ("values", Value::List(items, span)) => values = Some((items, *span)),
            ("key" | "operator", other) => {
                arguments.wrong(other.span(), format!("`{}` must be a string", name.text));
            }
            ("values", other) => arguments.wrong(other.span(), "`values` must be a list of strings"),
            (unknown, _) => {
                let near = did_you_mean(unknown, ["key", "operator", "values"]);
                arguments.wrong(name.span, format!("unknown field `{unknown}`{near}"));
            }
        }
    }
    match key {
        Some(key) => check_key(arguments, key),
        None => arguments.wrong(*span, "an expression needs a `key`"),
    }
    for value in values.iter().flat_map(|(items, _)| *items) {
        check_value(arguments, value);
    }
    let Some(operator) = operator else {
        return arguments
            .wrong(*span, format!("an expression needs an `operator`: {}", OPERATORS.join(", ")));
    };
    match (operator.text.as_str(), values) {
        ("In" | "NotIn", None) => {
            arguments.wrong(operator.span, format!("`{}` needs `values`", operator.text));
        }
        ("In" | "NotIn", Some((items, span))) if items.is_empty() => {
            arguments.wrong(span, format!("`{}` needs at least one value", operator.text));
        }
        ("Exists" | "DoesNotExist", Some((items, span))) if !items.is_empty() => {
            arguments.wrong(span, format!("`{}` must not have values", operator.text));
        }
        ("In" | "NotIn" | "Exists" | "DoesNotExist", _) => {}
        (unknown, _) => {
            let near = match did_you_mean(unknown, OPERATORS.iter().copied()) {
                near if near.is_empty() => format!("; expected one of {}", OPERATORS.join(", ")),
                near => near,
            };
            arguments.wrong(operator.span, format!("unknown operator `{unknown}`{near}"));
        }
    }
}

fn check_key(arguments: &mut Arguments, key: &Word) {
    if !is_qualified_name(&key.text) {
        let what = format!(
            "`{}` is not a valid label key: write `name` or `example.com/name`, with a name of up to 63 characters",
            key.text
        );
        arguments.wrong(key.span, what);
    }
}

fn check_value(arguments: &mut Arguments, value: &Value) {
    match value {
        Value::Text(word) if is_label_value(&word.text) => {}
        Value::Text(word) => {
            let what = format!(
                "`{}` is not a valid label value: use up to 63 letters, digits, `-`, `_` and `.`",
                word.text
            );
            arguments.wrong(word.span, what);
        }
        other => arguments.wrong(other.span(), "label values are strings; put it in quotes"),
    }
}
