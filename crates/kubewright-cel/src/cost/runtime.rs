//! Actual cost of function calls at run time.

use super::{PER_CHARACTER, PER_REGEX_CHARACTER};
use crate::value::{Extension, Value};

pub(crate) const SELECT: u64 = super::SELECT;
pub(crate) const LIST: u64 = super::LIST;
pub(crate) const MAP: u64 = super::MAP;
pub(crate) const STRUCT: u64 = super::STRUCT;

/// The size of a value for cost tracking; 1 if it has no size.
pub(crate) fn size(value: &Value<'_>) -> u64 {
    value.size().map_or(1, |size| size as u64)
}

/// The cost of `a == b`.
pub(crate) fn equality(a: &Value<'_>, b: &Value<'_>) -> u64 {
    if matches!(a, Value::Extension(_)) {
        return 1;
    }
    factor(size(a).min(size(b)), PER_CHARACTER)
}

/// The cost of `a + b`.
pub(crate) fn addition(overload: &str, a: &Value<'_>, b: &Value<'_>) -> u64 {
    match overload {
        "add_string" | "add_bytes" => factor(size(a) + size(b), PER_CHARACTER),
        _ => 1,
    }
}

/// The cost of a call. For member functions the target is the first argument.
pub(crate) fn call(function: &str, overload: &str, args: &[Value<'_>], result: Option<&Value<'_>>) -> u64 {
    of_function(function, overload, args, result).or_else(|| of_overload(overload, args, result)).unwrap_or(1)
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "upstream uses floating point, and sizes are small enough"
)]
fn factor(size: u64, per_unit: f64) -> u64 {
    (size as f64 * per_unit).ceil() as u64
}

fn regex(text: &Value<'_>, pattern_size: u64) -> u64 {
    factor(size(text) + 1, PER_CHARACTER).saturating_mul(factor(pattern_size, PER_REGEX_CHARACTER))
}

/// Cost of Kubernetes' functions, and of some CEL functions that Kubernetes overrides.
fn of_function(
    function: &str,
    overload: &str,
    args: &[Value<'_>],
    result: Option<&Value<'_>>,
) -> Option<u64> {
    let first = args.first()?;
    let traversal = factor(size(first), PER_CHARACTER);
    Some(match function {
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => traversal_cost(first),
        "url" | "lowerAscii" | "upperAscii" | "substring" | "trim" | "cidr" | "isIP" | "isCIDR"
        | "quantity" | "isQuantity" | "semver" | "isSemver" => traversal,
        "replace" | "split" | "ip.isCanonical" => factor(size(first), 2.0 * PER_CHARACTER),
        "join" => factor(result.map_or(1, size), 2.0 * PER_CHARACTER),
        "find" | "findAll" => regex(first, size(args.get(1)?)),
        "ip" => {
            if overload == "cidr_ip" {
                1
            } else {
                traversal
            }
        }
        _ if super::costs_one(function) => 1,
        "check" => super::AUTHORIZATION_CHECK,
        "containsIP" => {
            let parsing = if overload == "cidr_contains_ip_string" {
                factor(size(args.get(1)?), PER_CHARACTER)
            } else {
                0
            };
            factor(size(first) * 2, PER_CHARACTER) + parsing
        }
        "containsCIDR" => {
            let parsing = if overload == "cidr_contains_cidr_string" {
                factor(size(args.get(1)?), PER_CHARACTER)
            } else {
                0
            };
            factor(size(first) * 2, PER_CHARACTER) + traversal + 1 + parsing
        }
        "validate" => match first {
            Value::Extension(Extension::Format(format)) => regex(args.get(1)?, format.regex_size),
            _ => return None,
        },
        _ => return None,
    })
}

/// Cost of CEL's own overloads.
fn of_overload(overload: &str, args: &[Value<'_>], result: Option<&Value<'_>>) -> Option<u64> {
    let first = args.first()?;
    let second = || args.get(1);
    Some(match overload {
        "string_to_bytes" | "bytes_to_string" | "string_format" | "strings_quote" => {
            factor(size(first), PER_CHARACTER)
        }
        "starts_with_string" | "ends_with_string" => factor(size(second()?), PER_CHARACTER),
        "less_string"
        | "greater_string"
        | "less_equals_string"
        | "greater_equals_string"
        | "less_bytes"
        | "greater_bytes"
        | "less_equals_bytes"
        | "greater_equals_bytes" => factor(size(first).min(size(second()?)), PER_CHARACTER),
        "matches" | "matches_string" => regex(first, size(second()?)),
        "contains_string" => {
            factor(size(first), PER_CHARACTER).saturating_mul(factor(size(second()?), PER_CHARACTER))
        }
        "list_slice" | "lists_range" | "list_reverse" => result.map_or(1, size) + 1 + LIST,
        "list_flatten" => size(first) + 1 + LIST,
        "list_flatten_int" => {
            let depth =
                if let Some(Value::Int(depth)) = second() { u64::try_from(*depth).unwrap_or(0) } else { 1 };
            size(first).saturating_mul(depth) + 1 + LIST
        }
        "list_distinct" => self_compared(first),
        "list_sets_contains_list" | "list_sets_intersects_list" => 1 + size(first) * size(second()?),
        "list_sets_equivalent_list" => 1 + size(first) * size(second()?) * 2,
        _ if overload.ends_with("_sort") => self_compared(first),
        _ if overload.ends_with("_sortByAssociatedKeys") => self_compared(second()?),
        _ => return None,
    })
}

/// The cost of comparing each item of one list with each item of the other.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "upstream uses floating point, and sizes are small enough"
)]
fn self_compared(list: &Value<'_>) -> u64 {
    let size = size(list);
    let is_text = match list {
        Value::List(list) => matches!(list.get(0), Some(Ok(Value::String(_) | Value::Bytes(_)))),
        _ => false,
    };
    let per_item = if is_text { 2.0 + PER_CHARACTER } else { 2.0 };
    (size.saturating_mul(size) as f64 * per_item) as u64 + 1 + LIST
}

/// The cost of traversing a value.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "upstream uses floating point, and sizes are small enough"
)]
fn traversal_cost(value: &Value<'_>) -> u64 {
    match value {
        Value::String(text) => (text.len() as f64 * PER_CHARACTER) as u64,
        Value::Bytes(bytes) => (bytes.len() as f64 * PER_CHARACTER) as u64,
        Value::List(list) => list.iter().map(|item| item.map_or(1, |item| traversal_cost(&item))).sum(),
        Value::Map(map) => map
            .keys()
            .iter()
            .map(|key| {
                let value = map.find(key).ok().flatten();
                traversal_cost(key) + value.map_or(1, |value| traversal_cost(&value))
            })
            .sum(),
        _ => 1,
    }
}
