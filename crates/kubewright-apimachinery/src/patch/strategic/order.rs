//! The order of a merged list.
//!
//! Elements of the patch stand as the patch, or `$setElementOrder`, has them; the others as the live list has
//! them. The two are woven together by the live order as far as it tells.

use serde_json::{Map, Value};

use super::StrategicPatchError as Error;
use super::print::go_list_text;
use super::{PATCH, Result};

type Key = Option<&'static str>;

/// The elements of `merged` in their final order: those that `wanted` names as it has them, all others as
/// `live` has them.
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
    let is_wanted = |element: &Value| position(wanted, element, key).is_some();
    let (patched, others): (Vec<Value>, Vec<Value>) = merged.into_iter().partition(is_wanted);
    Ok(weave(sort(others, live, key), sort(patched, wanted, key), live, key))
}

/// Elements of the patch must all be in the order list, and in that order; those that are deleted need not.
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

/// The live list as upstream sees it when it orders a list that was patched. It edits the list in place: new
/// elements stand where deleted ones stood, and so count as live.
pub(super) fn live_after(live: &[Value], patch: &[Value], key: Key) -> Vec<Value> {
    let Some(key) = key else { return live.to_vec() };
    let has_id = |list: &[Value], id: &Value| list.iter().any(|element| element.get(key) == Some(id));
    let (deleted, plain): (Vec<Value>, Vec<Value>) =
        patch.iter().cloned().partition(|element| element.get(PATCH).is_some());
    let is_deleted = |element: &&Value| element.get(key).is_some_and(|id| has_id(&deleted, id));
    let mut after: Vec<Value> = live.iter().filter(|element| !is_deleted(element)).cloned().collect();
    for element in plain {
        if element.get(key).is_some_and(|id| !has_id(&after, id)) {
            after.push(element);
        }
    }
    after.truncate(live.len());
    after
}

/// Sorts by the positions in `order`. An element that is not there moves before all that stand before it, and
/// so does whatever follows it: upstream's comparison says that either is less, and it sorts by insertion.
fn sort(mut elements: Vec<Value>, order: &[Value], key: Key) -> Vec<Value> {
    let mut positions: Vec<Option<usize>> =
        elements.iter().map(|element| position(order, element, key)).collect();
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

/// One list of both. An element of `others` goes before the next of `patched` only if it does so in the live
/// list.
fn weave(others: Vec<Value>, patched: Vec<Value>, live: &[Value], key: Key) -> Vec<Value> {
    let mut woven = Vec::with_capacity(others.len() + patched.len());
    let mut others = others.into_iter().map(|element| (position(live, &element, key), element)).peekable();
    for element in patched {
        let here = position(live, &element, key);
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

fn position(list: &[Value], element: &Value, key: Key) -> Option<usize> {
    let id = identity(element, key);
    list.iter().position(|other| identity(other, key) == id)
}

/// What tells an element of a list from the others.
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
