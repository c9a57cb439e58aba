//! Quantity functions.

use std::cmp::Ordering;
use std::sync::Arc;

use super::Function;
use super::semver;
use crate::error::EvalError;
use crate::value::{Evaluated, Extension, Value};
use kubewright_apimachinery::quantity::{Notation, Quantity};

pub(super) fn lookup(name: &str) -> Option<Function> {
    Some(match name {
        "quantity" => |args| match args {
            [Value::String(text)] => {
                Some(Quantity::parse(text).map(value).map_err(|error| EvalError::new(error.to_string())))
            }
            _ => None,
        },
        "isQuantity" => |args| match args {
            [Value::String(text)] => Some(Ok(Value::Bool(Quantity::parse(text).is_ok()))),
            _ => None,
        },
        "sign" => |args| of(args, |quantity| Ok(Value::Int(i64::from(quantity.sign())))),
        "asApproximateFloat" => |args| of(args, |quantity| Ok(Value::Double(quantity.to_f64()))),
        "asInteger" => |args| {
            of(args, |quantity| {
                quantity
                    .as_i64()
                    .map(Value::Int)
                    .ok_or_else(|| EvalError::new("cannot convert value to integer"))
            })
        },
        "isInteger" => |args| of(args, |quantity| Ok(Value::Bool(quantity.as_i64().is_some()))),
        "isGreaterThan" => |args| Some(Ok(Value::Bool(order(args)?.is_gt()))),
        "isLessThan" => |args| Some(Ok(Value::Bool(order(args)?.is_lt()))),
        "compareTo" => |args| Some(Ok(Value::Int(order(args)? as i64))),
        "add" => |args| changed(args, |a, b| a + b),
        "sub" => |args| changed(args, |a, b| a - b),
        _ => return None,
    })
}

fn value<'a>(quantity: Quantity) -> Value<'a> {
    Value::Extension(Extension::Quantity(Arc::new(quantity)))
}

fn of<'a>(args: &[Value<'a>], found: fn(&Quantity) -> Evaluated<'static>) -> Option<Evaluated<'a>> {
    match args {
        [Value::Extension(Extension::Quantity(quantity))] => Some(found(quantity)),
        _ => None,
    }
}

/// Compares two quantities or two semantic versions, which share their function names.
fn order(args: &[Value<'_>]) -> Option<Ordering> {
    match args {
        [Value::Extension(Extension::Quantity(a)), Value::Extension(Extension::Quantity(b))] => {
            Some(a.cmp(b))
        }
        _ => semver::order(args),
    }
}

fn changed<'a>(args: &[Value<'a>], change: fn(&Quantity, &Quantity) -> Quantity) -> Option<Evaluated<'a>> {
    match args {
        [Value::Extension(Extension::Quantity(a)), Value::Extension(Extension::Quantity(b))] => {
            Some(Ok(value(change(a, b))))
        }
        [Value::Extension(Extension::Quantity(a)), Value::Int(b)] => {
            Some(Ok(value(change(a, &Quantity::new(*b, Notation::DecimalExponent)))))
        }
        _ => None,
    }
}
