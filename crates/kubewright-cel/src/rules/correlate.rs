//! Correlation of old and new values.
//!
//! A rule violated by an unchanged value is only a warning (ratcheting). List items correlate only in lists
//! of type `map`.

use serde_json::Value as Json;

use crate::schema::Schema;
use kubewright_apimachinery::keyed::Keyed;

/// A new value and its old value.
#[derive(Debug, Clone, Copy)]
struct Pair<'a> {
    schema: &'a Schema,
    new: &'a Json,
    old: &'a Json,
}

/// The old value that correlates with a new value, if known.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Correlation<'a> {
    current: Option<Pair<'a>>,
    /// The closest ancestor with a known old value.
    above: Option<Pair<'a>>,
}

impl<'a> Correlation<'a> {
    pub(super) fn root(schema: &'a Schema, new: &'a Json, old: Option<&'a Json>) -> Self {
        Self { current: old.map(|old| Pair { schema, new, old }), above: None }
    }

    /// Whether the value did not change.
    pub(super) fn is_unchanged(self) -> bool {
        self.current.or(self.above).is_some_and(Pair::is_equal)
    }

    /// The correlation inside `allOf`, where the old value is unknown.
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

    /// The correlations of the items of a list.
    pub(super) fn items(self, count: usize) -> Vec<Self> {
        let Some(current) = self.current else { return vec![self; count] };
        let mut pairs = current.items().into_iter();
        let item = |_| Self { current: pairs.next().flatten(), above: Some(current) };
        (0..count).map(item).collect()
    }
}

impl Pair<'_> {
    fn key(self, name: &str) -> Option<Self> {
        let (new, old) = (self.new.as_object()?.get(name)?, self.old.as_object()?.get(name)?);
        let declared = self.schema.declared().and_then(|declared| declared.get(name));
        let schema = declared.or(self.schema.additional.as_deref())?;
        Some(Self { schema, new, old })
    }

    fn items(self) -> Vec<Option<Self>> {
        let (Json::Array(new), Json::Array(old)) = (self.new, self.old) else { return Vec::new() };
        let Some(schema) = self.schema.items.as_deref() else { return Vec::new() };
        let old = old_items(self.schema, old, new);
        new.iter().zip(old).map(|(new, old)| Some(Self { schema, new, old: old? })).collect()
    }

    fn is_equal(self) -> bool {
        match (self.new, self.old) {
            (Json::Array(new), Json::Array(old)) => {
                new.len() == old.len()
                    && if self.schema.list_type.as_deref() == Some("map") {
                        let items = self.items();
                        items.len() == new.len()
                            && items.into_iter().all(|item| item.is_some_and(Self::is_equal))
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

/// The old items with the same keys as the new ones, in a list of type `map`.
pub(super) fn old_items<'a>(schema: &Schema, old: &'a [Json], new: &[Json]) -> Vec<Option<&'a Json>> {
    if schema.type_name != "array" || schema.list_type.as_deref() != Some("map") {
        return vec![None; new.len()];
    }
    let keyed = Keyed::new(old, &schema.list_map_keys);
    new.iter().map(|item| keyed.find(item)).collect()
}
