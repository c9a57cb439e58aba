//! `find` and `findAll`.

use super::Function;
use crate::error::EvalError;
use crate::go_regex::{self, Matcher, TooCostly};
use crate::value::{Evaluated, Value};

pub(super) fn lookup(name: &str) -> Option<Function> {
    Some(match name {
        "find" => |args| match args {
            [Value::String(text), Value::String(pattern)] => {
                Some(compiled(pattern).and_then(|regex| find(&regex, text)))
            }
            _ => None,
        },
        "findAll" => |args| match args {
            [Value::String(text), Value::String(pattern)] => {
                Some(compiled(pattern).and_then(|regex| find_all(&regex, text, -1)))
            }
            [Value::String(text), Value::String(pattern), Value::Int(count)] => {
                Some(compiled(pattern).and_then(|regex| find_all(&regex, text, *count)))
            }
            _ => None,
        },
        _ => return None,
    })
}

fn compiled(pattern: &str) -> Result<Matcher, EvalError> {
    go_regex::compile(pattern).map_err(|error| EvalError::new(format!("Illegal regex: {error}")))
}

fn too_costly(error: TooCostly) -> EvalError {
    EvalError::new(error.to_string())
}

/// Whether the expression matches a part of the text.
pub(super) fn matches<'a>(regex: &Matcher, text: &str) -> Evaluated<'a> {
    regex.is_match(text).map(Value::Bool).map_err(too_costly)
}

/// The first match, or the empty string.
fn find<'a>(regex: &Matcher, text: &str) -> Evaluated<'a> {
    let found = regex.find(text, 1).map_err(too_costly)?;
    Ok(Value::string(found.first().copied().unwrap_or_default().to_owned()))
}

/// The matches, at most `count` unless it is negative.
fn find_all<'a>(regex: &Matcher, text: &str, count: i64) -> Evaluated<'a> {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    Ok(Value::strings(regex.find(text, count).map_err(too_costly)?.into_iter().map(str::to_owned)))
}

/// `matches`, `find` and `findAll` with a precompiled pattern.
pub(crate) fn call<'a>(name: &str, regex: &Matcher, args: &[Value<'a>]) -> Option<Evaluated<'a>> {
    Some(match (name, args) {
        ("matches", [Value::String(text), ..]) => matches(regex, text),
        ("find", [Value::String(text), _]) => find(regex, text),
        ("findAll", [Value::String(text), _]) => find_all(regex, text, -1),
        ("findAll", [Value::String(text), _, Value::Int(count)]) => find_all(regex, text, *count),
        _ => return None,
    })
}
