//! Operators and basic functions of the standard library.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::Function;
use super::time::Timestamp;
use crate::error::EvalError;
use crate::value::{Evaluated, Value};

pub(super) fn lookup(name: &str) -> Option<Function> {
    Some(match name {
        "_-_" => subtract,
        "_*_" => multiply,
        "_/_" => divide,
        "_%_" => modulo,
        "-_" => negate,
        "!_" => not,
        "_<_" => |args| ordered("_<_", args, Ordering::is_lt),
        "_<=_" => |args| ordered("_<=_", args, Ordering::is_le),
        "_>_" => |args| ordered("_>_", args, Ordering::is_gt),
        "_>=_" => |args| ordered("_>=_", args, Ordering::is_ge),
        "size" => size,
        "contains" => |args| text_test(args, |text, other| text.contains(other)),
        "startsWith" => |args| text_test(args, |text, other| text.starts_with(other)),
        "endsWith" => |args| text_test(args, |text, other| text.ends_with(other)),
        _ => return None,
    })
}

/// `a + b`. Appends in place if `a` is a list that is not shared.
pub(crate) fn add<'a>(a: Value<'a>, b: Value<'a>) -> Evaluated<'a> {
    let found = match (a, b) {
        (Value::Int(a), Value::Int(b)) => a.checked_add(b).map(Value::Int).ok_or("integer overflow"),
        (Value::Uint(a), Value::Uint(b)) => {
            a.checked_add(b).map(Value::Uint).ok_or("unsigned integer overflow")
        }
        (Value::Double(a), Value::Double(b)) => Ok(Value::Double(a + b)),
        (Value::String(a), Value::String(b)) => Ok(Value::String(Cow::Owned(format!("{a}{b}")))),
        (Value::Bytes(a), Value::Bytes(b)) => Ok(Value::Bytes([&a[..], &b[..]].concat().into())),
        (Value::List(a), Value::List(b)) => return a.add(&b).map(Value::List),
        (Value::Duration(a), Value::Duration(b)) => {
            a.checked_add(b).map(Value::Duration).ok_or("duration overflow")
        }
        (Value::Duration(length), Value::Timestamp(time))
        | (Value::Timestamp(time), Value::Duration(length)) => {
            time.plus(length).map(Value::Timestamp).ok_or("timestamp overflow")
        }
        (a, _) => return Err(unsupported("_+_", is_adder(&a))),
    };
    found.map_err(EvalError::new)
}

fn is_adder(value: &Value<'_>) -> bool {
    is_subtractor(value) || matches!(value, Value::String(_) | Value::Bytes(_) | Value::List(_))
}

fn is_subtractor(value: &Value<'_>) -> bool {
    is_number(value) || matches!(value, Value::Duration(_) | Value::Timestamp(_))
}

fn is_number(value: &Value<'_>) -> bool {
    matches!(value, Value::Int(_) | Value::Uint(_) | Value::Double(_))
}

/// The error of an operator without a matching overload. It names the operator only if the left operand has
/// an unsupported type.
pub(super) fn unsupported(name: &str, left_fits: bool) -> EvalError {
    if left_fits { EvalError::no_overload() } else { EvalError::new(format!("no such overload: {name}")) }
}

fn subtract<'a>(args: &[Value<'a>]) -> Option<Evaluated<'a>> {
    let [a, b] = args else { return None };
    let found = match (a, b) {
        (Value::Int(a), Value::Int(b)) => a.checked_sub(*b).map(Value::Int).ok_or("integer overflow"),
        (Value::Uint(a), Value::Uint(b)) => {
            a.checked_sub(*b).map(Value::Uint).ok_or("unsigned integer overflow")
        }
        (Value::Double(a), Value::Double(b)) => Ok(Value::Double(a - b)),
        (Value::Duration(a), Value::Duration(b)) => {
            a.checked_sub(*b).map(Value::Duration).ok_or("duration overflow")
        }
        (Value::Timestamp(time), Value::Duration(length)) => length
            .checked_neg()
            .and_then(|back| time.plus(back))
            .map(Value::Timestamp)
            .ok_or("timestamp overflow"),
        (Value::Timestamp(a), Value::Timestamp(b)) => {
            Timestamp::since(*a, *b).map(Value::Duration).ok_or("duration overflow")
        }
        (a, _) => return Some(Err(unsupported("_-_", is_subtractor(a)))),
    };
    Some(found.map_err(EvalError::new))
}

fn multiply<'a>(args: &[Value<'a>]) -> Option<Evaluated<'a>> {
    let found = match args {
        [Value::Int(a), Value::Int(b)] => a.checked_mul(*b).map(Value::Int).ok_or("integer overflow"),
        [Value::Uint(a), Value::Uint(b)] => {
            a.checked_mul(*b).map(Value::Uint).ok_or("unsigned integer overflow")
        }
        [Value::Double(a), Value::Double(b)] => Ok(Value::Double(a * b)),
        [a, _] => return Some(Err(unsupported("_*_", is_number(a)))),
        _ => return None,
    };
    Some(found.map_err(EvalError::new))
}

fn divide<'a>(args: &[Value<'a>]) -> Option<Evaluated<'a>> {
    let found = match args {
        [Value::Int(_), Value::Int(0)] | [Value::Uint(_), Value::Uint(0)] => Err("division by zero"),
        [Value::Int(a), Value::Int(b)] => a.checked_div(*b).map(Value::Int).ok_or("integer overflow"),
        [Value::Uint(a), Value::Uint(b)] => Ok(Value::Uint(a / b)),
        [Value::Double(a), Value::Double(b)] => Ok(Value::Double(a / b)),
        [a, _] => return Some(Err(unsupported("_/_", is_number(a)))),
        _ => return None,
    };
    Some(found.map_err(EvalError::new))
}

fn modulo<'a>(args: &[Value<'a>]) -> Option<Evaluated<'a>> {
    let found = match args {
        [Value::Int(_), Value::Int(0)] | [Value::Uint(_), Value::Uint(0)] => Err("modulus by zero"),
        [Value::Int(a), Value::Int(b)] => a.checked_rem(*b).map(Value::Int).ok_or("integer overflow"),
        [Value::Uint(a), Value::Uint(b)] => Ok(Value::Uint(a % b)),
        [a, _] => return Some(Err(unsupported("_%_", matches!(a, Value::Int(_) | Value::Uint(_))))),
        _ => return None,
    };
    Some(found.map_err(EvalError::new))
}

fn negate<'a>(args: &[Value<'a>]) -> Option<Evaluated<'a>> {
    Some(match args {
        [Value::Int(value)] => {
            value.checked_neg().map(Value::Int).ok_or_else(|| EvalError::new("integer overflow"))
        }
        [Value::Double(value)] => Ok(Value::Double(-value)),
        [Value::Bool(_)] => Err(EvalError::no_overload()),
        [_] => Err(unsupported("-_", false)),
        _ => return None,
    })
}

fn not<'a>(args: &[Value<'a>]) -> Option<Evaluated<'a>> {
    Some(match args {
        [Value::Bool(value)] => Ok(Value::Bool(!value)),
        [_] => Err(EvalError::no_overload()),
        _ => return None,
    })
}

fn ordered<'a>(name: &str, args: &[Value<'a>], fits: fn(Ordering) -> bool) -> Option<Evaluated<'a>> {
    let [a, b] = args else { return None };
    if !a.is_ordered() {
        return Some(Err(unsupported(name, false)));
    }
    Some(a.order(b).map(|ordering| Value::Bool(fits(ordering))))
}

fn size<'a>(args: &[Value<'a>]) -> Option<Evaluated<'a>> {
    let [value] = args else { return None };
    Some(match (value, value.size()) {
        (Value::String(_) | Value::Bytes(_) | Value::List(_) | Value::Map(_), Some(size)) => {
            Ok(Value::Int(i64::try_from(size).unwrap_or(i64::MAX)))
        }
        _ => Err(unsupported("size", false)),
    })
}

#[expect(clippy::unnecessary_wraps, reason = "must match the type of `Function`")]
fn text_test<'a>(args: &[Value<'a>], test: fn(&str, &str) -> bool) -> Option<Evaluated<'a>> {
    Some(match args {
        [Value::String(text), Value::String(other)] => Ok(Value::Bool(test(text, other))),
        _ => Err(EvalError::no_overload()),
    })
}
