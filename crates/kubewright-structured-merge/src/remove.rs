//! Taking fields out of a value, or leaving only them.
//!
//! A list or map that loses its last item is null afterwards, as upstream has it; whoever stores the object
//! brings it into its form.

use serde_json::Value;

use super::schema::{Schema, Shape, Ty};
use super::set::Set;
use super::typed::element;

/// Removes every field and item of the set.
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

/// The value with the fields and items of the set alone. Clients read their own configuration so: from the
/// leaves of the set that they own.
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
                    // Of a map that is owned by name alone upstream looks for the names of its neighbours.
                    Some((name.clone(), keep(ty, value, if node.member { kept } else { &node.children })))
                })
                .collect();
            if found.is_empty() { Value::Null } else { Value::Object(found) }
        }
        (_, value) => value.clone(),
    }
}
