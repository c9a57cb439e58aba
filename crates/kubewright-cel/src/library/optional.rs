//! Optional values. `or` and `orValue` short-circuit and are part of the evaluator.

use super::Function;
use crate::error::EvalError;
use crate::value::{Evaluated, Value};

pub(super) fn lookup(name: &str) -> Option<Function> {
    Some(match name {
        "optional.of" => |args| Some(Ok(Value::some(args.first()?.clone()))),
        "optional.ofNonZeroValue" => |args| {
            let value = args.first()?;
            Some(Ok(if value.is_zero() { Value::Optional(None) } else { Value::some(value.clone()) }))
        },
        "optional.none" => |_| Some(Ok(Value::Optional(None))),
        "value" => |args| match args {
            [Value::Optional(Some(value))] => Some(Ok((**value).clone())),
            [Value::Optional(None)] => Some(Err(EvalError::new("optional.none() dereference"))),
            _ => None,
        },
        "hasValue" => |args| match args {
            [Value::Optional(value)] => Some(Ok(Value::Bool(value.is_some()))),
            _ => None,
        },
        "first" => |args| item(args, |_| 0),
        "last" => |args| item(args, |length| length - 1),
        "optional.unwrap" | "unwrapOpt" => unwrap,
        _ => return None,
    })
}

fn item<'a>(args: &[Value<'a>], place: fn(usize) -> usize) -> Option<Evaluated<'a>> {
    let [Value::List(list)] = args else { return None };
    if list.is_empty() {
        return Some(Ok(Value::Optional(None)));
    }
    Some(list.get(place(list.len()))?.map(Value::some))
}

fn unwrap<'a>(args: &[Value<'a>]) -> Option<Evaluated<'a>> {
    let [Value::List(list)] = args else { return None };
    let mut found = Vec::new();
    for item in list.iter() {
        match item {
            Ok(Value::Optional(Some(value))) => found.push((*value).clone()),
            Ok(Value::Optional(None)) => {}
            Ok(other) => {
                return Some(Err(EvalError::new(format!("value {} is not optional", other.shown()))));
            }
            Err(error) => return Some(Err(error)),
        }
    }
    Some(Ok(Value::list(found)))
}
