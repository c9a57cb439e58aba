//! Merging: an object, and what somebody wants of it.
//!
//! Nothing is removed here: fields that are no longer wanted go by [`super::remove`]. Both values must fit the
//! schema; the second has no item twice.

use serde_json::Value;

use super::path::Element;
use super::schema::{List, Map, Schema, Shape, Ty};
use super::typed::element;

/// `live` with all that `wanted` says. Where both have a value it is that of `wanted`.
pub fn merge(schema: Schema<'_>, mut live: Value, wanted: &Value) -> Value {
    both(schema.ty(), &mut live, wanted);
    live
}

fn both(ty: Ty<'_>, live: &mut Value, wanted: &Value) {
    match ty.shape_of(wanted) {
        Shape::List(list) if !list.is_atomic() => {
            let items = wanted.as_array().map_or(&[][..], Vec::as_slice);
            match live {
                Value::Array(live) if !live.is_empty() => lists(&list, live, items),
                // Two empty ones are merged as values: null is not the empty list.
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

/// The names of a list's items.
struct Names {
    names: Vec<Element>,
    /// Positions in `names`, sorted by name.
    sorted: Vec<usize>,
}

impl Names {
    fn new(list: &List<'_>, items: &[Value]) -> Self {
        // An item without a name is nobody's but its own.
        let unnamed = |at| Element::Index(i64::try_from(at).unwrap_or(i64::MAX));
        let names = items.iter().enumerate();
        let names: Vec<Element> =
            names.map(|(at, item)| element(list, item).unwrap_or_else(|_| unnamed(at))).collect();
        let mut sorted: Vec<usize> = (0..names.len()).collect();
        sorted.sort_by(|a, b| names[*a].cmp(&names[*b]));
        Self { names, sorted }
    }

    /// Where the name stands; of several places the first, and whether there are several.
    fn find(&self, name: &Element) -> Option<(usize, bool)> {
        let start = self.sorted.partition_point(|at| self.names[*at] < *name);
        let mut same = self.sorted[start..].iter().take_while(|at| self.names[**at] == *name);
        same.next().map(|first| (*first, same.next().is_some()))
    }
}

/// Items that both have stand in the order of `wanted`; those that only `live` has keep their place between
/// them.
fn lists(list: &List<'_>, live: &mut Vec<Value>, wanted: &[Value]) {
    let (left, right) = (Names::new(list, live), Names::new(list, wanted));
    let mut items = std::mem::take(live);
    // Items that stand there twice are not merged: the wanted one takes their place.
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
    // What only `live` has is filled in at the end, by its position.
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
                // Both have it, but others come first.
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
