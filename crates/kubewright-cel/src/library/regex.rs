//! `find` and `findAll`.

use super::Function;
use crate::error::EvalError;
use crate::go_regex;
use crate::value::{Evaluated, Value};

pub(super) fn lookup(name: &str) -> Option<Function> {
    Some(match name {
        "find" => |args| match args {
            [Value::String(text), Value::String(pattern)] => {
                Some(compiled(pattern).map(|regex| find(&regex, text)))
            }
            _ => None,
        },
        "findAll" => |args| match args {
            [Value::String(text), Value::String(pattern)] => {
                Some(compiled(pattern).map(|regex| find_all(&regex, text, -1)))
            }
            [Value::String(text), Value::String(pattern), Value::Int(count)] => {
                Some(compiled(pattern).map(|regex| find_all(&regex, text, *count)))
            }
            _ => None,
        },
        _ => return None,
    })
}

fn compiled(pattern: &str) -> Result<regex::Regex, EvalError> {
    go_regex::compile(pattern).map_err(|error| EvalError::new(format!("Illegal regex: {error}")))
}

/// The first match, or the empty string.
pub(crate) fn find<'a>(regex: &regex::Regex, text: &str) -> Value<'a> {
    Value::string(regex.find(text).map_or("", |found| found.as_str()).to_owned())
}

/// The matches, at most `count` unless it is negative.
pub(crate) fn find_all<'a>(regex: &regex::Regex, text: &str, count: i64) -> Value<'a> {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    Value::strings(regex.find_iter(text).take(count).map(|found| found.as_str().to_owned()))
}

/// `matches`, `find` and `findAll` with a precompiled pattern.
pub(crate) fn call<'a>(name: &str, regex: &regex::Regex, args: &[Value<'a>]) -> Option<Evaluated<'a>> {
    Some(Ok(match (name, args) {
        ("matches", [Value::String(text), ..]) => Value::Bool(regex.is_match(text)),
        ("find", [Value::String(text), _]) => find(regex, text),
        ("findAll", [Value::String(text), _]) => find_all(regex, text, -1),
        ("findAll", [Value::String(text), _, Value::Int(count)]) => find_all(regex, text, *count),
        _ => return None,
    }))
}
