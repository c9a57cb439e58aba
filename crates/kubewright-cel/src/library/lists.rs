//! List, set and map functions.

use std::cmp::Ordering;

use super::strings::{self, int};
use super::{Function, add};
use crate::error::EvalError;
use crate::value::{Evaluated, List, Map, Value};

/// Maximum length of the result of `lists.range`.
const MAX_RANGE: i64 = 10_000_000;

pub(super) fn lookup(name: &str) -> Option<Function> {
    Some(match name {
        "isSorted" => |args| list(args).map(is_sorted),
        "sum" | "list_int_sum_int" => |args| list(args).map(|list| sum(list, Value::Int(0))),
        "list_uint_sum_uint" => |args| list(args).map(|list| sum(list, Value::Uint(0))),
        "list_double_sum_double" => |args| list(args).map(|list| sum(list, Value::Double(0.0))),
        "list_duration_sum_duration" => |args| list(args).map(|list| sum(list, Value::Duration(0))),
        "min" => |args| list(args).map(|list| extreme(list, "min", Ordering::Greater)),
        "max" => |args| list(args).map(|list| extreme(list, "max", Ordering::Less)),
        "indexOf" => |args| position(args, false).or_else(|| strings::index_of(args)),
        "lastIndexOf" => |args| position(args, true).or_else(|| strings::last_index_of(args)),
        "slice" => slice,
        "flatten" => flatten,
        "sort" => |args| list(args).map(|list| sort(list, list)),
        "@sortByAssociatedKeys" => |args| match args {
            [Value::List(list), Value::List(keys)] => Some(sort(list, keys)),
            _ => None,
        },
        "lists.range" => range,
        "reverse" => |args| {
            list(args).map(|list| list.values().map(|items| Value::list(items.into_iter().rev().collect())))
        },
        "distinct" => |args| list(args).map(distinct),
        "sets.contains" => |args| two_lists(args, contains_all),
        "sets.equivalent" => |args| two_lists(args, |a, b| Ok(contains_all(a, b)? && contains_all(b, a)?)),
        "sets.intersects" => |args| two_lists(args, intersects),
        "cel.@mapInsert" => map_insert,
        _ => return None,
    })
}

fn list<'b, 'a>(args: &'b [Value<'a>]) -> Option<&'b List<'a>> {
    match args {
        [Value::List(list)] => Some(list),
        _ => None,
    }
}

fn is_sorted<'a>(list: &List<'a>) -> Evaluated<'a> {
    let items = list.values()?;
    for pair in items.windows(2) {
        if !pair[0].is_ordered() || !pair[1].is_ordered() {
            return Err(EvalError::no_overload());
        }
        if matches!(pair[0].order(&pair[1]), Ok(Ordering::Greater)) {
            return Ok(Value::Bool(false));
        }
    }
    Ok(Value::Bool(true))
}

fn sum<'a>(list: &List<'a>, zero: Value<'a>) -> Evaluated<'a> {
    let mut items = list.values()?.into_iter();
    let first = items.next().unwrap_or(zero);
    items.try_fold(first, add)
}

fn extreme<'a>(list: &List<'a>, name: &str, replaced_if: Ordering) -> Evaluated<'a> {
    let mut found: Option<Value<'a>> = None;
    for item in list.iter() {
        let item = item?;
        if !item.is_ordered() {
            return Err(EvalError::no_overload());
        }
        found = match found {
            Some(best) if !matches!(best.order(&item), Ok(ordering) if ordering == replaced_if) => Some(best),
            _ => Some(item),
        };
    }
    found.ok_or_else(|| EvalError::new(format!("{name} called on empty list")))
}

fn position<'a>(args: &[Value<'a>], from_end: bool) -> Option<Evaluated<'a>> {
    let [Value::List(list), wanted] = args else { return None };
    let is_wanted =
        |at: &usize| matches!(list.get(*at), Some(Ok(item)) if matches!(item.equals(wanted), Ok(true)));
    let mut places = 0..list.len();
    let found = if from_end { places.rfind(is_wanted) } else { places.find(is_wanted) };
    Some(Ok(Value::Int(found.map_or(-1, int))))
}

fn slice<'a>(args: &[Value<'a>]) -> Option<Evaluated<'a>> {
    let [Value::List(list), Value::Int(start), Value::Int(end)] = args else { return None };
    let length = int(list.len());
    let problem = if *start < 0 || *end < 0 {
        "negative indexes not supported".to_owned()
    } else if start > end {
        "start index must be less than or equal to end index".to_owned()
    } else if length < *end {
        format!("list is length {length}")
    } else {
        let (start, end) = (usize::try_from(*start).unwrap_or(0), usize::try_from(*end).unwrap_or(0));
        let items: Result<Vec<_>, _> = (start..end).filter_map(|at| list.get(at)).collect();
        return Some(items.map(Value::list));
    };
    Some(Err(EvalError::new(format!("cannot slice({start}, {end}), {problem}"))))
}

fn flatten<'a>(args: &[Value<'a>]) -> Option<Evaluated<'a>> {
    let (list, depth) = match args {
        [Value::List(list)] => (list, 1),
        [Value::List(list), Value::Int(depth)] => (list, *depth),
        _ => return None,
    };
    if depth < 0 {
        return Some(Err(EvalError::new("level must be non-negative")));
    }
    let mut flat = Vec::new();
    Some(flatten_into(list, depth, &mut flat).map(|()| Value::list(flat)))
}

fn flatten_into<'a>(list: &List<'a>, depth: i64, flat: &mut Vec<Value<'a>>) -> Result<(), EvalError> {
    for item in list.iter() {
        match item? {
            Value::List(inner) if depth > 0 => flatten_into(&inner, depth - 1, flat)?,
            item => flat.push(item),
        }
    }
    Ok(())
}

/// Sorts the items by their keys.
fn sort<'a>(list: &List<'a>, keys: &List<'a>) -> Evaluated<'a> {
    if list.len() != keys.len() {
        return Err(EvalError::new(format!(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, \
             but got {} and {} elements respectively",
            list.len(),
            keys.len()
        )));
    }
    let keys = keys.values()?;
    let Some(first) = keys.first() else { return Ok(Value::List(list.clone())) };
    if !first.is_ordered() {
        return Err(EvalError::new("list elements must be comparable"));
    }
    if keys.iter().any(|key| key.type_name() != first.type_name()) {
        return Err(EvalError::new("list elements must have the same type"));
    }
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_by(|a, b| keys[*a].order(&keys[*b]).unwrap_or(Ordering::Equal));
    let items = list.values()?;
    Ok(Value::list(order.into_iter().map(|at| items[at].clone()).collect()))
}

fn range<'a>(args: &[Value<'a>]) -> Option<Evaluated<'a>> {
    let [Value::Int(size)] = args else { return None };
    Some(if *size < 0 {
        Err(EvalError::new(format!("lists.range: size must be non-negative, got {size}")))
    } else if *size > MAX_RANGE {
        Err(EvalError::new(format!("lists.range: size {size} exceeds maximum allowed ({MAX_RANGE})")))
    } else {
        Ok(Value::list((0..*size).map(Value::Int).collect()))
    })
}

fn distinct<'a>(list: &List<'a>) -> Evaluated<'a> {
    let mut found: Vec<Value<'a>> = Vec::new();
    for item in list.iter() {
        let item = item?;
        if !found.iter().any(|other| matches!(item.equals(other), Ok(true))) {
            found.push(item);
        }
    }
    Ok(Value::list(found))
}

type Test = fn(&List<'_>, &List<'_>) -> Result<bool, EvalError>;

fn two_lists<'a>(args: &[Value<'a>], test: Test) -> Option<Evaluated<'a>> {
    match args {
        [Value::List(a), Value::List(b)] => Some(test(a, b).map(Value::Bool)),
        _ => None,
    }
}

fn contains_all(list: &List<'_>, part: &List<'_>) -> Result<bool, EvalError> {
    for item in part.iter() {
        if !list.contains(&item?)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn intersects(a: &List<'_>, b: &List<'_>) -> Result<bool, EvalError> {
    for item in a.iter() {
        if matches!(b.contains(&item?), Ok(true)) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn map_insert<'a>(args: &[Value<'a>]) -> Option<Evaluated<'a>> {
    let inserted = match args {
        [Value::Map(map), key, value] => map.clone().insert(key.clone(), value.clone()),
        [Value::Map(map), Value::Map(more)] => {
            more.keys().into_iter().try_fold(map.clone(), |map: Map<'a>, key| {
                let value = more.find(&key)?.unwrap_or(Value::Null);
                map.insert(key, value)
            })
        }
        _ => return None,
    };
    Some(inserted.map(Value::Map))
}
