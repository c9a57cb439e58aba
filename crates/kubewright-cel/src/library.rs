//! Function implementations.
//!
//! A [`Function`] receives its arguments, for member functions the target first, and returns `None` if no
//! overload matches them. Functions are pure and do not track costs. Short-circuiting operators are part of
//! the evaluator.

pub(crate) mod authz;
pub(crate) mod convert;
pub(crate) mod format;
pub(crate) mod formats;
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

/// A function implementation. Returns `None` if no overload matches the arguments.
pub(crate) type Function = for<'a> fn(&[Value<'a>]) -> Option<Evaluated<'a>>;

/// The implementation of the function `name`.
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

/// Calls `function`. Returns cel-go's error if no overload matches the arguments.
pub(crate) fn call<'a>(name: &str, function: Function, args: &[Value<'a>]) -> Evaluated<'a> {
    function(args).unwrap_or_else(|| {
        let types: Vec<&str> = args.iter().map(Value::type_name).collect();
        Err(EvalError::new(format!("no such overload: {name}({})", types.join(", "))))
    })
}
