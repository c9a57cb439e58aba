//! Ratcheting: correlates old and new values, so that unchanged values need not be valid.
//!
//! Fields correlate by name, items of lists of type `map` by their keys. Items of other lists do not
//! correlate: such a list is compared as a whole.

use serde_json::Value;

use crate::structural::{ListType, Structural, Type};
use kubewright_apimachinery::keyed::Keyed;

/// A new value, its old value and their schema.
#[derive(Clone, Copy)]
pub(super) struct Pair<'a> {
    pub(super) new: &'a Value,
    pub(super) old: &'a Value,
    pub(super) schema: &'a Structural,
}

impl Pair<'_> {
    /// The pair of a declared field that both objects have.
    pub(super) fn key(&self, name: &str) -> Option<Self> {
        let (Value::Object(new), Value::Object(old)) = (self.new, self.old) else { return None };
        Some(Self { new: new.get(name)?, old: old.get(name)?, schema: self.schema.field(name)? })
    }

    /// The items of the new list, each with the old item of the same keys.
    pub(super) fn elements(&self) -> Vec<Option<Self>> {
        let (Value::Array(new), Value::Array(old)) = (self.new, self.old) else { return Vec::new() };
        let Some(schema) = self.schema.items.as_deref().filter(|_| self.is_map()) else { return Vec::new() };
        let keyed = Keyed::new(old, &self.schema.list_map_keys);
        new.iter().map(|new| keyed.find(new).map(|old| Self { new, old, schema })).collect()
    }

    /// Whether this is a list of type `map`.
    fn is_map(&self) -> bool {
        self.schema.list_type == Some(ListType::Map) && self.schema.types().single() == Some(Type::Array)
    }

    /// Whether the declared parts of the value did not change.
    pub(super) fn is_equal(&self) -> bool {
        match (self.new, self.old) {
            (Value::Array(new), Value::Array(old)) => {
                if new.len() != old.len() {
                    return false;
                }
                if self.schema.list_type != Some(ListType::Map) {
                    return new == old;
                }
                let elements = self.elements();
                elements.len() == new.len()
                    && elements.iter().all(|pair| pair.is_some_and(|pair| pair.is_equal()))
            }
            (Value::Object(new), Value::Object(old)) => {
                new.len() == old.len()
                    && new.keys().all(|name| self.key(name).is_some_and(|pair| pair.is_equal()))
            }
            (new, old) => new == old,
        }
    }
}
