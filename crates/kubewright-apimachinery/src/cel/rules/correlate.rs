//! Which old value belongs to a new one, and whether it is the same.
//!
//! A rule that is broken by a value that did not change is only warned about. Lists are compared item by item
//! only where items have keys.

use serde_json::Value as Json;

use crate::cel::schema::Schema;

/// A new value beside its old one.
#[derive(Debug, Clone, Copy)]
struct Pair<'a> {
    schema: &'a Schema,
    new: &'a Json,
    old: &'a Json,
}

/// What is known of the old value at one place.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Correlation<'a> {
    current: Option<Pair<'a>>,
    /// The closest place above where the old value is known.
    above: Option<Pair<'a>>,
}

impl<'a> Correlation<'a> {
    pub(super) fn root(schema: &'a Schema, new: &'a Json, old: Option<&'a Json>) -> Self {
        Self { current: old.map(|old| Pair { schema, new, old }), above: None }
    }

    /// Whether the value is as it was.
    pub(super) fn is_unchanged(self) -> bool {
        self.current.or(self.above).is_some_and(Pair::is_equal)
    }

    /// What an `allOf` knows: nothing of the value itself.
    pub(super) fn of_all_of(self) -> Self {
        Self { current: None, above: self.above }
    }

    pub(super) fn key(self, name: &str) -> Self {
        let Some(current) = self.current else { return self };
        if self.above.is_none() && matches!(name, "apiVersion" | "kind") {
            return Self::default();
        }
        Self { current: current.key(name), above: Some(current) }
    }

    pub(super) fn index(self, index: usize) -> Self {
        let Some(current) = self.current else { return self };
        Self { current: current.index(index), above: Some(current) }
    }
}

impl Pair<'_> {
    fn key(self, name: &str) -> Option<Self> {
        let (new, old) = (self.new.as_object()?.get(name)?, self.old.as_object()?.get(name)?);
        let declared = self.schema.declared().and_then(|declared| declared.get(name));
        let schema = declared.or(self.schema.additional.as_deref())?;
        Some(Self { schema, new, old })
    }

    fn index(self, index: usize) -> Option<Self> {
        let new = self.new.as_array()?.get(index)?;
        let old = old_item(self.schema, self.old.as_array()?, new)?;
        Some(Self { schema: self.schema.items.as_deref()?, new, old })
    }

    fn is_equal(self) -> bool {
        match (self.new, self.old) {
            (Json::Array(new), Json::Array(old)) => {
                new.len() == old.len()
                    && if self.schema.list_type.as_deref() == Some("map") {
                        (0..new.len()).all(|index| self.index(index).is_some_and(Self::is_equal))
                    } else {
                        new == old
                    }
            }
            (Json::Object(new), Json::Object(old)) => {
                new.len() == old.len() && new.keys().all(|name| self.key(name).is_some_and(Self::is_equal))
            }
            (new, old) => new == old,
        }
    }
}

/// The old item that has the same keys as `new`, in a list whose items have keys.
pub(super) fn old_item<'a>(schema: &Schema, old: &'a [Json], new: &Json) -> Option<&'a Json> {
    if schema.type_name != "array"
        || schema.list_type.as_deref() != Some("map")
        || schema.list_map_keys.is_empty()
    {
        return None;
    }
    let keys = |item: &'a Json| key_values(schema, item);
    let wanted =
        schema.list_map_keys.iter().map(|key| scalar(new.get(key)?)).collect::<Option<Vec<&Json>>>()?;
    old.iter().find(|item| keys(item).is_some_and(|found| found == wanted))
}

fn key_values<'a>(schema: &Schema, item: &'a Json) -> Option<Vec<&'a Json>> {
    schema.list_map_keys.iter().map(|key| scalar(item.get(key)?)).collect()
}

fn scalar(value: &Json) -> Option<&Json> {
    matches!(value, Json::Bool(_) | Json::Number(_) | Json::String(_)).then_some(value)
}
