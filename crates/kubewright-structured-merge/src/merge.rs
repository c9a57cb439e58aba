//! Merge of an applied configuration into an object.
//!
//! Only adds and replaces fields; [`super::remove`] removes those that are no longer applied. Both values
//! must be valid for the schema, and the second must not contain duplicate list items.

use serde_json::Value;

use super::path::{Element, equal};
use super::schema::{List, Map, Schema, Shape, Ty};
use super::typed::element;

/// Merges `wanted` into `live`. Where both have a value, `wanted` wins.
pub fn merge(schema: Schema<'_>, mut live: Value, wanted: &Value) -> Value {
    both(schema.ty(), &mut live, wanted);
    live
}

/// Whether merging `wanted` into `live` gives `live`. May return false for lists with duplicate items.
pub(crate) fn is_merged(ty: Ty<'_>, live: &Value, wanted: &Value) -> bool {
    match (ty.shape_of(wanted), live, wanted) {
        (Shape::List(list), Value::Array(live), Value::Array(wanted))
            if !list.is_atomic() && !live.is_empty() =>
        {
            is_list_merged(&list, live, wanted)
        }
        (Shape::Map(map), Value::Object(live), Value::Object(wanted)) if !map.atomic && !live.is_empty() => {
            wanted.iter().all(|(name, wanted)| {
                live.get(name)
                    .is_some_and(|live| is_merged(map.at(name).unwrap_or(Ty::Untyped), live, wanted))
            })
        }
        _ => equal(live, wanted),
    }
}

/// Whether all wanted items are merged, and in the order of `wanted`.
fn is_list_merged(list: &List<'_>, live: &[Value], wanted: &[Value]) -> bool {
    let names = Names::new(list, live);
    let mut next = 0;
    wanted.iter().all(|wanted| {
        let Ok(name) = element(list, wanted) else { return false };
        match names.find(&name) {
            Some((at, false)) if at >= next => {
                next = at + 1;
                is_merged(list.element, &live[at], wanted)
            }
            _ => false,
        }
    })
}

fn both(ty: Ty<'_>, live: &mut Value, wanted: &Value) {
    match ty.shape_of(wanted) {
        Shape::List(list) if !list.is_atomic() => {
            let items = wanted.as_array().map_or(&[][..], Vec::as_slice);
            match live {
                Value::Array(live) if !live.is_empty() => lists(&list, live, items),
                // Empty values are merged as atoms: null is not the empty list.
                _ => *live = wanted.clone(),
            }
        }
        Shape::Map(map) if !map.atomic => match live {
            Value::Object(live) if !live.is_empty() => maps(&map, live, wanted.as_object()),
            _ => *live = wanted.clone(),
        },
        _ => *live = wanted.clone(),
    }
}

fn maps(
    map: &Map<'_>,
    live: &mut serde_json::Map<String, Value>,
    wanted: Option<&serde_json::Map<String, Value>>,
) {
    for (name, wanted) in wanted.into_iter().flatten() {
        match live.get_mut(name) {
            Some(live) => both(map.at(name).unwrap_or(Ty::Untyped), live, wanted),
            None => {
                live.insert(name.clone(), wanted.clone());
            }
        }
    }
}

/// The path elements of a list's items.
struct Names {
    names: Vec<Element>,
    /// Positions in `names`, sorted by name.
    sorted: Vec<usize>,
}

impl Names {
    fn new(list: &List<'_>, items: &[Value]) -> Self {
        // Items without a key are addressed by index.
        let unnamed = |at| Element::Index(i64::try_from(at).unwrap_or(i64::MAX));
        let names = items.iter().enumerate();
        let names: Vec<Element> =
            names.map(|(at, item)| element(list, item).unwrap_or_else(|_| unnamed(at))).collect();
        let mut sorted: Vec<usize> = (0..names.len()).collect();
        sorted.sort_by(|a, b| names[*a].cmp(&names[*b]));
        Self { names, sorted }
    }

    /// The first position of the name, and whether it occurs more than once.
    fn find(&self, name: &Element) -> Option<(usize, bool)> {
        let start = self.sorted.partition_point(|at| self.names[*at] < *name);
        let mut same = self.sorted[start..].iter().take_while(|at| self.names[**at] == *name);
        same.next().map(|first| (*first, same.next().is_some()))
    }
}

/// Items in both lists have the order of `wanted`; items only in `live` keep their position between them.
fn lists(list: &List<'_>, live: &mut Vec<Value>, wanted: &[Value]) {
    let (left, right) = (Names::new(list, live), Names::new(list, wanted));
    let mut items = std::mem::take(live);
    // Duplicate items are not merged: the wanted item replaces them.
    let mut merged_with = |name: &Element, wanted: &Value| match left.find(name) {
        Some((at, false)) => {
            let mut item = items[at].take();
            both(list.element, &mut item, wanted);
            item
        }
        _ => wanted.clone(),
    };
    let mut shared = right.names.iter().filter(|name| left.find(name).is_some()).peekable();
    let mut done = vec![false; right.names.len()];
    // Items only in `live` are recorded by position and moved in at the end.
    let mut order: Vec<Result<Value, usize>> = Vec::with_capacity(left.names.len().max(right.names.len()));
    let (mut l, mut r) = (0, 0);
    while l < left.names.len() || r < right.names.len() {
        if let (Some(mine), Some(name)) = (left.names.get(l), right.names.get(r)) {
            if mine == name {
                done[r] = true;
                order.push(Ok(merged_with(name, &wanted[r])));
                (l, r) = (l + 1, r + 1);
                shared.next();
                continue;
            }
            if right.find(mine).is_some() && shared.peek().is_some_and(|next| *next != mine) {
                // In both lists, but other items precede it in `wanted`.
                l += 1;
                continue;
            }
        }
        if let Some(mine) = left.names.get(l) {
            match right.find(mine) {
                None => {
                    order.push(Err(l));
                    l += 1;
                    continue;
                }
                Some((at, _)) if done[at] => l += 1,
                Some(_) => {}
            }
        }
        if let Some(name) = right.names.get(r) {
            done[r] = true;
            order.push(Ok(merged_with(name, &wanted[r])));
            if shared.peek().is_some_and(|next| *next == name) {
                shared.next();
            }
            r += 1;
        }
    }
    *live = order.into_iter().map(|item| item.unwrap_or_else(|at| items[at].take())).collect();
}
