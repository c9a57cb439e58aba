//! What functions do.
//!
//! A [`Function`] looks at its arguments, the target of a member first, and answers `None` if it has no
//! overload for them. Functions are pure; costs are counted elsewhere. Operators that must not evaluate all
//! of their operands are part of the evaluator.

pub(crate) mod authz;
pub(crate) mod convert;
pub(crate) mod format;
pub(crate) mod formats;
pub(crate) mod go_regex;
mod lists;
mod net;
mod operators;
mod optional;
mod quantity;
pub(crate) mod regex;
pub(crate) mod semver;
mod strings;
pub(crate) mod time;
pub(crate) mod url;

use super::error::EvalError;
use super::value::{Evaluated, Value};

pub(crate) use operators::add;

/// A function. `None` if it has no overload for the values.
pub(crate) type Function = for<'a> fn(&[Value<'a>]) -> Option<Evaluated<'a>>;

/// The function of that name.
pub(crate) fn lookup(name: &str) -> Option<Function> {
    operators::lookup(name)
        .or_else(|| convert::lookup(name))
        .or_else(|| time::lookup(name))
        .or_else(|| strings::lookup(name))
        .or_else(|| lists::lookup(name))
        .or_else(|| optional::lookup(name))
        .or_else(|| regex::lookup(name))
        .or_else(|| url::lookup(name))
        .or_else(|| quantity::lookup(name))
        .or_else(|| net::lookup(name))
        .or_else(|| semver::lookup(name))
        .or_else(|| formats::lookup(name))
        .or_else(|| authz::lookup(name))
}

/// Calls `function`, with cel-go's error where it has no overload for the values.
pub(crate) fn call<'a>(name: &str, function: Function, args: &[Value<'a>]) -> Evaluated<'a> {
    function(args).unwrap_or_else(|| {
        let types: Vec<&str> = args.iter().map(Value::type_name).collect();
        Err(EvalError::new(format!("no such overload: {name}({})", types.join(", "))))
    })
}
