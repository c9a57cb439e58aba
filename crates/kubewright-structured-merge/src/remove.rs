//! Removal and extraction of fields.
//!
//! As upstream, a list or map that loses its last item becomes null; the caller normalises the object before
//! storing it.

use serde_json::Value;

use super::schema::{Schema, Shape, Ty};
use super::set::Set;
use super::typed::element;

/// Removes all fields and items of the set.
pub(crate) fn remove(ty: Ty<'_>, value: &mut Value, gone: &Set) {
    let emptied = match (ty.shape_of(value), &mut *value) {
        (Shape::Scalar(_), _) => false,
        (Shape::List(list), Value::Array(items)) => {
            if !list.is_atomic() {
                items.retain_mut(|item| match element(&list, item).ok().and_then(|name| gone.node(&name)) {
                    Some(node) if node.member => false,
                    Some(node) => {
                        remove(list.element, item, &node.children);
                        true
                    }
                    None => true,
                });
            }
            list.is_atomic() || items.is_empty()
        }
        (Shape::Map(map), Value::Object(fields)) => {
            if !map.atomic {
                fields.retain(|name, value| match gone.node_of_field(name) {
                    Some(node) if node.member => false,
                    Some(node) => {
                        remove(map.at(name).unwrap_or(Ty::Untyped), value, &node.children);
                        true
                    }
                    None => true,
                });
            }
            map.atomic || fields.is_empty()
        }
        _ => true,
    };
    if emptied {
        *value = Value::Null;
    }
}

/// Extracts the fields and items of the set. Clients use it to read the configuration that they applied, from
/// the leaves of their field set.
pub fn extract(schema: Schema<'_>, value: &Value, kept: &Set) -> Value {
    keep(schema.ty(), value, kept)
}

fn keep(ty: Ty<'_>, value: &Value, kept: &Set) -> Value {
    match (ty.shape_of(value), value) {
        (Shape::List(list), Value::Array(items)) if !list.is_atomic() && !items.is_empty() => {
            let found: Vec<Value> = items
                .iter()
                .filter_map(|item| {
                    let node = kept.node(&element(&list, item).ok()?)?;
                    let part = !node.children.is_empty();
                    Some(if part { keep(list.element, item, &node.children) } else { item.clone() })
                })
                .collect();
            if found.is_empty() { Value::Null } else { Value::Array(found) }
        }
        (Shape::Map(map), Value::Object(fields)) if !map.atomic && !fields.is_empty() => {
            let found: serde_json::Map<String, Value> = fields
                .iter()
                .filter_map(|(name, value)| {
                    let node = kept.node_of_field(name)?;
                    let ty = map.at(name).unwrap_or(Ty::Untyped);
                    // As upstream: below a map that is owned only by name, look up the names of the parent
                    // set.
                    Some((name.clone(), keep(ty, value, if node.member { kept } else { &node.children })))
                })
                .collect();
            if found.is_empty() { Value::Null } else { Value::Object(found) }
        }
        (_, value) => value.clone(),
    }
}
