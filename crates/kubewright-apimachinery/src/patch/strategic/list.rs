//! Merging of lists: scalars as sets, objects by merge key.
//!
//! Determines the elements of the merged list; [`order`](super::order) determines their order.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::StrategicPatchError as Error;
use super::order::{self, arrange};
use super::print::{go_list_text, go_type};
use super::schema::{List, Schema};
use super::{PATCH, Result, SET_ELEMENT_ORDER, merge_objects, target, without_directives};

/// Merges a patch into a list. With `deletes`, the patch contains scalars to delete.
pub(super) fn merge(live: Vec<Value>, patch: Vec<Value>, field: &List, deletes: bool) -> Result<Vec<Value>> {
    if live.is_empty() && patch.is_empty() {
        return Ok(live);
    }
    if element_type(&live, &patch)? == Element::Object {
        return merge_maps(live, patch, field);
    }
    if deletes {
        let deleted: HashSet<&Value> = patch.iter().collect();
        return Ok(live.into_iter().filter(|value| !deleted.contains(value)).collect());
    }
    if field.key.is_some() {
        // The patch adds scalars to an empty list of objects.
        return Err(Error::not_an_object(live.first().or(patch.first()).unwrap_or(&Value::Null)));
    }
    let mut seen = HashSet::new();
    let merged = live.iter().chain(&patch).filter(|value| seen.insert(*value)).cloned().collect();
    arrange(merged, &patch, &live, None)
}

/// Merges the list of `directive`, a `$setElementOrder/NAME` of the patch, and removes both from the patch.
pub(super) fn merge_in_order(
    original: &mut Map<String, Value>,
    patch: &mut Map<String, Value>,
    directive: &str,
    schema: Schema,
) -> Result<()> {
    let wanted = list_of(patch.remove(directive))?.unwrap_or_default();
    let name = target(directive, SET_ELEMENT_ORDER)?;
    let live = list_of(original.remove(name))?;
    let patched = list_of(patch.remove(name))?;
    let field = schema.list(name)?;
    order::check(patched.as_deref().unwrap_or_default(), &wanted, field.key)?;
    if live.is_none() && patched.is_none() {
        return Ok(());
    }
    element_type(live.as_deref().unwrap_or_default(), patched.as_deref().unwrap_or_default())?;
    let (merged, live_order) = match (live, patched) {
        (Some(live), Some(patched)) => {
            let live_order = order::live_after(&live, &patched, field.key);
            (if field.merge { merge(live, patched, &field, false)? } else { patched }, live_order)
        }
        (Some(live), None) => (live.clone(), live),
        (None, patched) => {
            let added = patched.unwrap_or_default();
            (added.into_iter().filter_map(without_directives).collect(), Vec::new())
        }
    };
    let arranged = arrange(merged, &wanted, &live_order, field.key)?;
    original.insert(name.to_owned(), Value::Array(arranged));
    Ok(())
}

fn merge_maps(live: Vec<Value>, patch: Vec<Value>, field: &List) -> Result<Vec<Value>> {
    let key = field.key.ok_or_else(|| Error::NoKeyInType(field.element.go_kind()))?;
    let (live, patch) = apply_directives(live, patch, key)?;
    let mut merged = live.clone();
    let mut places: HashMap<Value, usize> = HashMap::new();
    for (at, element) in live.iter().enumerate() {
        if let Some(id) = element.get(key) {
            places.entry(id.clone()).or_insert(at);
        }
    }
    for element in &patch {
        let Value::Object(new) = element else { return Err(Error::not_an_object(element)) };
        let id = new.get(key).ok_or_else(|| Error::no_merge_key(new, key))?;
        if let Some(old) = places.get(id).and_then(|at| merged[*at].as_object_mut()) {
            *old = merge_objects(std::mem::take(old), new.clone(), field.element)?;
        } else {
            places.insert(id.clone(), merged.len());
            merged.push(element.clone());
        }
    }
    arrange(merged, &patch, &live, Some(key))
}

/// Applies elements with `$patch`. Returns both lists without deleted elements and without directives.
fn apply_directives(
    mut live: Vec<Value>,
    patch: Vec<Value>,
    key: &'static str,
) -> Result<(Vec<Value>, Vec<Value>)> {
    let mut plain = Vec::with_capacity(patch.len());
    let mut deleted = HashSet::new();
    let mut replace = false;
    for element in patch {
        let Value::Object(map) = &element else { return Err(Error::not_an_object(&element)) };
        let Some(directive) = map.get(PATCH) else {
            plain.push(element);
            continue;
        };
        match directive.as_str() {
            Some("delete") => {
                let id = map.get(key).ok_or_else(|| Error::no_merge_key(map, key))?;
                deleted.insert(id.clone());
            }
            Some("replace") => replace = true,
            Some("merge") => return Err(Error::MergeInList),
            _ => return Err(Error::unknown_directive(directive, map)),
        }
    }
    live.retain(|old| old.get(key).is_none_or(|id| !deleted.contains(id)));
    Ok(if replace { (plain, Vec::new()) } else { (live, plain) })
}

#[derive(PartialEq, Eq)]
enum Element {
    Object,
    Scalar,
}

/// The element type of both lists. All elements must have the same type, and there must be at least one.
fn element_type(live: &[Value], patch: &[Value]) -> Result<Element> {
    let mut elements = live.iter().chain(patch);
    let first = elements.next().ok_or(Error::NoElements)?;
    let mixed = || Error::MixedElements(format!("[{} {}]", go_list_text(live), go_list_text(patch)));
    match first {
        Value::Array(_) => Err(Error::ListOfLists),
        // Upstream panics here.
        Value::Null => Err(mixed()),
        _ if elements.any(|element| go_type(element) != go_type(first)) => Err(mixed()),
        Value::Object(_) => Ok(Element::Object),
        _ => Ok(Element::Scalar),
    }
}

fn list_of(value: Option<Value>) -> Result<Option<Vec<Value>>> {
    match value {
        None => Ok(None),
        Some(Value::Array(list)) => Ok(Some(list)),
        Some(other) => Err(Error::not_a_list(&other)),
    }
}
