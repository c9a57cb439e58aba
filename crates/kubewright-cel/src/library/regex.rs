//! `matches`, `find` and `findAll`.

use std::collections::HashMap;

use super::Function;
use crate::error::EvalError;
use crate::go_regex::{self, Matcher, PatternError, TooCostly};
use crate::value::{Evaluated, Value};

/// Patterns that are kept compiled. Items of a list often share their pattern.
const KEPT: usize = 64;

/// Whether the second argument of the function is a pattern. For member functions the target is the first argument.
pub(crate) fn takes_pattern(name: &str) -> bool {
    matches!(name, "matches" | "find" | "findAll")
}

/// The functions with arguments that are not strings. With strings, the evaluator uses [`call`].
pub(super) fn lookup(name: &str) -> Option<Function> {
    Some(match name {
        "matches" => |args| {
            let text = matches!(args.first(), Some(Value::String(_)));
            Some(Err(super::operators::unsupported("matches", text)))
        },
        "find" | "findAll" => |_| None,
        _ => return None,
    })
}

/// Compiled patterns of one evaluation that are not constant.
#[derive(Debug, Default)]
pub(crate) struct Patterns(HashMap<String, Matcher>);

impl Patterns {
    /// Compiles the pattern unless it is known. Returns the cost, which upstream does not charge.
    pub(crate) fn compile(&mut self, pattern: &str) -> Result<u64, PatternError> {
        if self.0.contains_key(pattern) {
            return Ok(0);
        }
        let matcher = go_regex::compile(pattern)?;
        let cost = matcher.cost();
        if self.0.len() == KEPT {
            self.0.clear();
        }
        self.0.insert(pattern.to_owned(), matcher);
        Ok(cost)
    }

    /// A pattern that was just compiled.
    pub(crate) fn get(&self, pattern: &str) -> Option<&Matcher> {
        self.0.get(pattern)
    }
}

/// The error of a call with an invalid pattern.
pub(crate) fn invalid(name: &str, error: &PatternError) -> EvalError {
    EvalError::new(if name == "matches" { error.to_string() } else { format!("Illegal regex: {error}") })
}

fn too_costly(error: TooCostly) -> EvalError {
    EvalError::new(error.to_string())
}

/// Whether the expression matches a part of the text.
fn matches<'a>(regex: &Matcher, text: &str) -> Evaluated<'a> {
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

/// `matches`, `find` and `findAll` with a compiled pattern.
pub(crate) fn call<'a>(name: &str, regex: &Matcher, args: &[Value<'a>]) -> Option<Evaluated<'a>> {
    Some(match (name, args) {
        ("matches", [Value::String(text), ..]) => matches(regex, text),
        ("find", [Value::String(text), _]) => find(regex, text),
        ("findAll", [Value::String(text), _]) => find_all(regex, text, -1),
        ("findAll", [Value::String(text), _, Value::Int(count)]) => find_all(regex, text, *count),
        _ => return None,
    })
}
