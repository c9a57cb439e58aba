//! The order of a merged list.
//!
//! Elements of the patch have the order of the patch or of `$setElementOrder`; the others have their live
//! order. Both are merged by their positions in the live list where possible.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::StrategicPatchError as Error;
use super::print::go_list_text;
use super::{PATCH, Result};

type Key = Option<&'static str>;

/// Maximum length of a list that is sorted by insertion.
const LONG: usize = 1_000;

/// Sorts `merged`: elements in `wanted` by its order, all others by the order of `live`.
pub(super) fn arrange(merged: Vec<Value>, wanted: &[Value], live: &[Value], key: Key) -> Result<Vec<Value>> {
    if let Some(key) = key {
        check_keys(&merged, key)?;
        if let Some(at) =
            wanted.iter().position(|element| !element.is_object()).filter(|_| !merged.is_empty())
        {
            return Err(Error::NotAMap(at));
        }
        check_keys(wanted, key)?;
        check_keys(live, key)?;
    }
    let (wanted, live) = (Places::new(wanted, key), Places::new(live, key));
    let is_wanted = |element: &Value| wanted.of(element).is_some();
    let (patched, others): (Vec<Value>, Vec<Value>) = merged.into_iter().partition(is_wanted);
    Ok(weave(sort(others, &live), sort(patched, &wanted), &live))
}

/// Checks that the elements of the patch occur in `wanted` in the same order. Deleted elements are exempt.
pub(super) fn check(patch: &[Value], wanted: &[Value], key: Key) -> Result<()> {
    if patch.is_empty() || wanted.is_empty() {
        return Ok(());
    }
    let mut kept = Vec::with_capacity(patch.len());
    for element in patch {
        match (element, key) {
            (Value::Object(map), Some(_))
                if map.get(PATCH).is_some_and(|directive| directive == "delete") => {}
            (Value::Object(_), Some(_)) | (_, None) => kept.push(element),
            (other, Some(_)) => return Err(Error::not_an_object(other)),
        }
    }
    let mut expected = wanted.iter();
    for element in kept {
        if element.get(PATCH).is_some() && !expected.as_slice().is_empty() {
            continue;
        }
        loop {
            let Some(next) = expected.next() else {
                return Err(Error::OrderMismatch { patch: go_list_text(patch), order: go_list_text(wanted) });
            };
            if same(element, next, key)? {
                break;
            }
        }
    }
    Ok(())
}

/// The live list as upstream sees it when it orders a patched list. Upstream modifies the list in place: new
/// elements take the positions of deleted ones and count as live.
pub(super) fn live_after(live: &[Value], patch: &[Value], key: Key) -> Vec<Value> {
    let Some(key) = key else { return live.to_vec() };
    let (deleted, plain): (Vec<&Value>, Vec<&Value>) =
        patch.iter().partition(|element| element.get(PATCH).is_some());
    let deleted: HashSet<&Value> = deleted.into_iter().filter_map(|element| element.get(key)).collect();
    let is_deleted = |element: &&Value| element.get(key).is_some_and(|id| deleted.contains(id));
    let mut after: Vec<&Value> = live.iter().filter(|element| !is_deleted(element)).collect();
    let mut ids: HashSet<&Value> = after.iter().filter_map(|element| element.get(key)).collect();
    after.extend(plain.into_iter().filter(|element| element.get(key).is_some_and(|id| ids.insert(id))));
    after.truncate(live.len());
    after.into_iter().cloned().collect()
}

/// Sorts by the positions in `order`. Elements without a position compare inconsistently in upstream's
/// insertion sort: they and their successors move to the front. Long lists put them first instead, because
/// insertion sort would be too slow.
fn sort(mut elements: Vec<Value>, order: &Places<'_>) -> Vec<Value> {
    let mut positions: Vec<Option<usize>> = elements.iter().map(|element| order.of(element)).collect();
    if positions.iter().all(Option::is_some) || positions.len() > LONG {
        elements.sort_by_cached_key(|element| order.of(element));
        return elements;
    }
    for next in 1..elements.len() {
        let mut at = next;
        while at > 0 && positions[at].zip(positions[at - 1]).is_none_or(|(this, before)| this < before) {
            positions.swap(at, at - 1);
            elements.swap(at, at - 1);
            at -= 1;
        }
    }
    elements
}

/// Merges both lists. An element of `others` precedes the next one of `patched` only if it does so in the
/// live list.
fn weave(others: Vec<Value>, patched: Vec<Value>, live: &Places<'_>) -> Vec<Value> {
    let mut woven = Vec::with_capacity(others.len() + patched.len());
    let mut others = others.into_iter().map(|element| (live.of(&element), element)).peekable();
    for element in patched {
        let here = live.of(&element);
        while let Some((_, other)) =
            others.next_if(|(at, _)| at.zip(here).is_some_and(|(at, here)| at < here))
        {
            woven.push(other);
        }
        woven.push(element);
    }
    woven.extend(others.map(|(_, element)| element));
    woven
}

/// Positions of list elements, by identity.
struct Places<'a> {
    first: HashMap<Option<&'a Value>, usize>,
    key: Key,
}

impl<'a> Places<'a> {
    fn new(list: &'a [Value], key: Key) -> Self {
        let mut first = HashMap::with_capacity(list.len());
        for (at, element) in list.iter().enumerate() {
            first.entry(identity(element, key)).or_insert(at);
        }
        Self { first, key }
    }

    fn of(&self, element: &Value) -> Option<usize> {
        self.first.get(&identity(element, self.key)).copied()
    }
}

/// What identifies a list element: its merge key or its value.
fn identity(element: &Value, key: Key) -> Option<&Value> {
    match key {
        Some(key) => element.get(key),
        None => Some(element),
    }
}

fn same(left: &Value, right: &Value, key: Key) -> Result<bool> {
    let Some(key) = key else { return Ok(left == right) };
    let (left, right) = (map_of(left)?, map_of(right)?);
    Ok(id_of(left, key)? == id_of(right, key)?)
}

fn check_keys(list: &[Value], key: &'static str) -> Result<()> {
    for element in list {
        id_of(map_of(element)?, key)?;
    }
    Ok(())
}

fn map_of(element: &Value) -> Result<&Map<String, Value>> {
    element.as_object().ok_or_else(|| Error::not_an_object(element))
}

fn id_of<'a>(map: &'a Map<String, Value>, key: &'static str) -> Result<&'a Value> {
    map.get(key).ok_or_else(|| Error::no_merge_key(map, key))
}
