//! Old and new values side by side, so that what has not changed need not become right.
//!
//! Fields go with fields, and elements of a list map with those of the same keys. Elements of other lists go
//! with nothing: such a list has changed as a whole, or not at all.

use serde_json::{Map, Value};

use crate::custom::schema::{ListType, Schema, Type};

/// A value, the one that it replaces, and the schema of both.
#[derive(Clone, Copy)]
pub(super) struct Pair<'a> {
    pub(super) new: &'a Value,
    pub(super) old: &'a Value,
    pub(super) schema: &'a Schema,
}

impl<'a> Pair<'a> {
    /// The values of a field that both have and the schema knows.
    pub(super) fn key(&self, name: &str) -> Option<Self> {
        let (Value::Object(new), Value::Object(old)) = (self.new, self.old) else { return None };
        Some(Self { new: new.get(name)?, old: old.get(name)?, schema: self.schema.field(name)? })
    }

    /// An element of the new list and the old one with the same keys.
    pub(super) fn index(&self, index: usize) -> Option<Self> {
        let (Value::Array(new), Value::Array(old)) = (self.new, self.old) else { return None };
        if self.schema.list_type != Some(ListType::Map) {
            return None;
        }
        let new = new.get(index)?;
        let old = self.same_keys(new, old)?;
        Some(Self { new, old, schema: self.schema.items.as_deref()? })
    }

    /// Nothing has changed, as far as the schema knows the value.
    pub(super) fn is_equal(&self) -> bool {
        match (self.new, self.old) {
            (Value::Array(new), Value::Array(old)) => {
                if new.len() != old.len() {
                    return false;
                }
                if self.schema.list_type != Some(ListType::Map) {
                    return new == old;
                }
                (0..new.len()).all(|index| self.index(index).is_some_and(|pair| pair.is_equal()))
            }
            (Value::Object(new), Value::Object(old)) => {
                new.len() == old.len()
                    && new.keys().all(|name| self.key(name).is_some_and(|pair| pair.is_equal()))
            }
            (new, old) => new == old,
        }
    }

    fn same_keys(&self, element: &Value, others: &'a [Value]) -> Option<&'a Value> {
        let keys = &self.schema.list_map_keys;
        if keys.is_empty() || self.schema.types.single() != Some(Type::Array) {
            return None;
        }
        let fields = element.as_object()?;
        if !keys.iter().all(|key| is_scalar(fields, key)) {
            return None;
        }
        others.iter().find(|other| {
            other.as_object().is_some_and(|other| {
                keys.iter().all(|key| is_scalar(other, key) && other.get(key) == fields.get(key))
            })
        })
    }
}

fn is_scalar(fields: &Map<String, Value>, key: &str) -> bool {
    matches!(fields.get(key), Some(Value::Bool(_) | Value::Number(_) | Value::String(_)))
}
