//! Read-only view of a schema in a CRD.
//!
//! [`Schema`] wraps the JSON as the user wrote it; absent, null and empty values read alike, as in Go. It
//! provides access to subschemas and does not validate them.
//!
//! Only the validation of CRDs uses it, because a [`Structural`](crate::Structural) does not have what it checks:
//! keywords that structural schemas must not have, and errors in the order of the document. Upstream validates its
//! unconverted `JSONSchemaProps` in the same way. Everything else reads a `Structural`.

use serde_json::{Map, Value};

use kubewright_apimachinery::object::Fields as _;

/// One node of an OpenAPI v3 schema.
#[derive(Debug, Clone, Copy)]
pub(super) struct Schema<'a>(pub(super) &'a Value);

/// The value of `items`.
pub(super) enum Items<'a> {
    /// One schema for all items.
    One(Schema<'a>),
    /// A schema for each position, which CRDs do not allow.
    Each(&'a [Value]),
}

/// The value of `additionalProperties` or `additionalItems`.
#[derive(Clone, Copy)]
pub(super) enum Additional<'a> {
    Allowed(bool),
    Schema(Schema<'a>),
}

impl<'a> Schema<'a> {
    /// A member by its exact name. Property names may contain dots.
    pub(super) fn get(self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    pub(super) fn text(self, name: &str) -> &'a str {
        self.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    pub(super) fn flag(self, name: &str) -> bool {
        self.get(name).and_then(Value::as_bool).unwrap_or_default()
    }

    /// A string member that may be absent, like a Go pointer.
    pub(super) fn optional_text(self, name: &str) -> Option<&'a str> {
        self.get(name).and_then(Value::as_str)
    }

    pub(super) fn kind(self) -> &'a str {
        self.text("type")
    }

    pub(super) fn default(self) -> Option<&'a Value> {
        self.get("default")
    }

    pub(super) fn preserves_unknown_fields(self) -> bool {
        self.flag("x-kubernetes-preserve-unknown-fields")
    }

    pub(super) fn is_embedded(self) -> bool {
        self.flag("x-kubernetes-embedded-resource")
    }

    pub(super) fn list_type(self) -> Option<&'a str> {
        self.optional_text("x-kubernetes-list-type")
    }

    pub(super) fn map_type(self) -> Option<&'a str> {
        self.optional_text("x-kubernetes-map-type")
    }

    pub(super) fn map_keys(self) -> Vec<&'a str> {
        self.strings("x-kubernetes-list-map-keys")
    }

    pub(super) fn rules(self) -> &'a [Value] {
        self.0.list_at("x-kubernetes-validations")
    }

    pub(super) fn strings(self, name: &str) -> Vec<&'a str> {
        self.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
    }

    pub(super) fn map(self, name: &str) -> &'a Map<String, Value> {
        self.0.map_at(name)
    }

    pub(super) fn properties(self) -> impl Iterator<Item = (&'a str, Schema<'a>)> {
        self.map("properties").iter().map(|(name, schema)| (name.as_str(), Schema(schema)))
    }

    pub(super) fn property(self, name: &str) -> Option<Schema<'a>> {
        self.map("properties").get(name).map(Schema)
    }

    pub(super) fn list(self, name: &str) -> impl Iterator<Item = Schema<'a>> {
        self.get(name).and_then(Value::as_array).into_iter().flatten().map(Schema)
    }

    pub(super) fn not(self) -> Option<Schema<'a>> {
        self.get("not").map(Schema)
    }

    pub(super) fn items(self) -> Option<Items<'a>> {
        match self.get("items")? {
            Value::Array(each) => Some(Items::Each(each)),
            one => Some(Items::One(Schema(one))),
        }
    }

    /// The schema of the items, if there is one for all.
    pub(super) fn item(self) -> Option<Schema<'a>> {
        match self.items()? {
            Items::One(schema) => Some(schema),
            Items::Each(_) => None,
        }
    }

    pub(super) fn additional(self, name: &str) -> Option<Additional<'a>> {
        match self.get(name)? {
            Value::Bool(allowed) => Some(Additional::Allowed(*allowed)),
            schema => Some(Additional::Schema(Schema(schema))),
        }
    }

    pub(super) fn additional_properties(self) -> Option<Additional<'a>> {
        self.additional("additionalProperties")
    }

    /// Whether `found` returns true for this schema or any subschema.
    pub(super) fn any(self, found: &mut dyn FnMut(Schema<'a>) -> bool) -> bool {
        found(self) || self.children().into_iter().any(|child| child.any(found))
    }

    fn children(self) -> Vec<Schema<'a>> {
        let mut children = Vec::new();
        match self.items() {
            Some(Items::One(schema)) => children.push(schema),
            Some(Items::Each(each)) => children.extend(each.iter().map(Schema)),
            None => {}
        }
        for name in ["allOf", "anyOf", "oneOf"] {
            children.extend(self.list(name));
        }
        children.extend(self.not());
        for name in ["properties", "patternProperties", "definitions", "dependencies"] {
            children.extend(self.map(name).values().filter(|value| value.is_object()).map(Schema));
        }
        for name in ["additionalProperties", "additionalItems"] {
            if let Some(Additional::Schema(schema)) = self.additional(name) {
                children.push(schema);
            }
        }
        children
    }
}
