//! Markers for schema keywords that neither schemars nor kube supports as attributes.
//!
//! A marker is a function in schemars' `transform` attribute, so the compiler checks its name and arguments:
//!
//! ```
//! use std::collections::BTreeMap;
//!
//! use kubewright_manifests::schema::{self, Format};
//! use schemars::JsonSchema;
//!
//! #[derive(JsonSchema)]
//! #[schemars(transform = schema::at_most_one_of(["pages", "source"]))]
//! struct BookSpec {
//!     #[schemars(transform = schema::min_properties(1))]
//!     pages: Option<BTreeMap<String, String>>,
//!     #[schemars(transform = schema::format(Format::Uri), transform = schema::immutable())]
//!     source: Option<String>,
//!     #[schemars(transform = schema::items(schema::pattern("^[a-z]+$")))]
//!     tags: Option<Vec<String>>,
//! }
//! ```
//!
//! A marker adds its keywords immediately, so they are in every schema of schemars. It also adds a note about
//! the types that it supports, under a private key. [`crd::of`](crate::crd::of) removes the notes and reports
//! markers that do not match.

mod format;
pub(crate) mod note;
mod number;
pub(crate) mod union;

use kube_core::Rule;
use kubewright_cel::escape_name;
use schemars::Schema;
use schemars::transform::Transform;
use serde_json::{Map, Value, json};

pub use self::format::Format;
pub use self::number::Numeric;

const NUMBERS: &[&str] = &["integer", "number"];
const STRING: &[&str] = &["string"];
const LIST: &[&str] = &["array"];
const OBJECT: &[&str] = &["object"];
const ANY: &[&str] = &[];

/// A marker: a [`Transform`] for schemars' attribute `transform`.
#[derive(Clone, Debug)]
#[must_use = "a marker only has an effect in #[schemars(transform = ...)]"]
pub struct Marker {
    name: &'static str,
    /// The supported types; empty for all.
    on: &'static [&'static str],
    set: Vec<(&'static str, Value)>,
}

impl Marker {
    fn new(
        name: &'static str,
        on: &'static [&'static str],
        key: &'static str,
        value: impl Into<Value>,
    ) -> Self {
        Self { name, on, set: vec![(key, value.into())] }
    }

    fn and(mut self, key: &'static str, value: impl Into<Value>) -> Self {
        self.set.push((key, value.into()));
        self
    }
}

impl Transform for Marker {
    fn transform(&mut self, schema: &mut Schema) {
        let map = schema.ensure_object();
        for (key, value) in &self.set {
            map.insert((*key).to_owned(), value.clone());
        }
        if !self.on.is_empty() {
            note::fits(map, self.name, self.on, self.set.iter().map(|(key, _)| *key));
        }
    }
}

/// `minimum` of a number.
pub fn minimum(least: impl Numeric) -> Marker {
    Marker::new("minimum", NUMBERS, "minimum", least.to_json())
}

/// `maximum` of a number.
pub fn maximum(most: impl Numeric) -> Marker {
    Marker::new("maximum", NUMBERS, "maximum", most.to_json())
}

/// `minimum` with `exclusiveMinimum`.
pub fn exclusive_minimum(bound: impl Numeric) -> Marker {
    Marker::new("exclusive_minimum", NUMBERS, "minimum", bound.to_json()).and("exclusiveMinimum", true)
}

/// `maximum` with `exclusiveMaximum`.
pub fn exclusive_maximum(bound: impl Numeric) -> Marker {
    Marker::new("exclusive_maximum", NUMBERS, "maximum", bound.to_json()).and("exclusiveMaximum", true)
}

/// `multipleOf` of a number.
pub fn multiple_of(of: impl Numeric) -> Marker {
    Marker::new("multiple_of", NUMBERS, "multipleOf", of.to_json())
}

/// `minLength` of a string.
pub fn min_length(least: u64) -> Marker {
    Marker::new("min_length", STRING, "minLength", least)
}

/// `maxLength` of a string.
pub fn max_length(most: u64) -> Marker {
    Marker::new("max_length", STRING, "maxLength", most)
}

/// `pattern` of a string: a regular expression in RE2 syntax.
pub fn pattern(expression: &str) -> Marker {
    Marker::new("pattern", STRING, "pattern", expression)
}

/// `format` of a string or number.
pub fn format(format: Format) -> Marker {
    Marker::new("format", format.fits(), "format", format.name())
}

/// `minItems` of a list.
pub fn min_items(least: u64) -> Marker {
    Marker::new("min_items", LIST, "minItems", least)
}

/// `maxItems` of a list.
pub fn max_items(most: u64) -> Marker {
    Marker::new("max_items", LIST, "maxItems", most)
}

/// `minProperties` of a map.
pub fn min_properties(least: u64) -> Marker {
    Marker::new("min_properties", OBJECT, "minProperties", least)
}

/// `maxProperties` of a map.
pub fn max_properties(most: u64) -> Marker {
    Marker::new("max_properties", OBJECT, "maxProperties", most)
}

/// `enum`: the allowed values. Prefer a Rust enum.
pub fn enumeration<V: Into<Value>>(values: impl IntoIterator<Item = V>) -> Marker {
    let values: Vec<Value> = values.into_iter().map(Into::into).collect();
    let on = match values.first() {
        Some(Value::String(_)) => STRING,
        Some(Value::Number(_)) => NUMBERS,
        _ => ANY,
    };
    Marker::new("enumeration", on, "enum", values)
}

/// `nullable`: the field may be null, which differs from being absent.
pub fn nullable() -> Marker {
    Marker::new("nullable", ANY, "nullable", true)
}

/// `title`.
pub fn title(title: &str) -> Marker {
    Marker::new("title", ANY, "title", title)
}

/// `example`.
pub fn example(example: impl Into<Value>) -> Marker {
    Marker::new("example", ANY, "example", example)
}

/// `externalDocs`: a link to more documentation.
pub fn external_docs(url: &str, description: &str) -> Marker {
    let mut docs = json!({ "url": url });
    if !description.is_empty() {
        docs["description"] = description.into();
    }
    Marker::new("external_docs", ANY, "externalDocs", docs)
}

/// `x-kubernetes-preserve-unknown-fields`: keeps fields that are not in the schema.
pub fn preserve_unknown_fields() -> Marker {
    Marker::new("preserve_unknown_fields", ANY, "x-kubernetes-preserve-unknown-fields", true)
}

/// `x-kubernetes-map-type: atomic` on a struct or map: a field manager owns it as a whole.
pub fn atomic_struct() -> Marker {
    Marker::new("atomic_struct", OBJECT, "x-kubernetes-map-type", "atomic")
}

/// `x-kubernetes-list-type: atomic`: a field manager owns the list as a whole.
pub fn list_atomic() -> Marker {
    Marker::new("list_atomic", LIST, "x-kubernetes-list-type", "atomic")
}

/// `x-kubernetes-list-type: set`: items are unique scalars, each with its own field manager.
pub fn list_set() -> Marker {
    Marker::new("list_set", LIST, "x-kubernetes-list-type", "set")
}

/// `x-kubernetes-list-type: map`: items are identified by these keys, each with its own field manager.
pub fn list_map<'a>(keys: impl IntoIterator<Item = &'a str>) -> Marker {
    let keys: Vec<&str> = keys.into_iter().collect();
    Marker::new("list_map", LIST, "x-kubernetes-list-type", "map").and("x-kubernetes-list-map-keys", keys)
}

/// `x-kubernetes-validations`: adds a CEL rule. Like kube's `#[x_kube(validation = ...)]`, but also works on
/// enums and inside [`items`].
pub fn validation(rule: impl Into<Rule>) -> impl Transform {
    let rule = serde_json::to_value(rule.into()).unwrap_or_default();
    move |schema: &mut Schema| add_rule(schema.ensure_object(), rule.clone())
}

/// A field that cannot change after it is set: `k8s:immutable`.
pub fn immutable() -> impl Transform {
    validation(Rule::new("self == oldSelf").message("field is immutable"))
}

/// At most one of these fields, by JSON name, may be set.
pub fn at_most_one_of<'a>(fields: impl IntoIterator<Item = &'a str>) -> impl Transform {
    one_of("at_most_one_of", fields, "<= 1", "at most one of the fields in", "may be set")
}

/// Exactly one of these fields, by JSON name, must be set. Prefer an externally tagged enum.
pub fn exactly_one_of<'a>(fields: impl IntoIterator<Item = &'a str>) -> impl Transform {
    one_of("exactly_one_of", fields, "== 1", "exactly one of the fields in", "must be set")
}

/// At least one of these fields, by JSON name, must be set.
pub fn at_least_one_of<'a>(fields: impl IntoIterator<Item = &'a str>) -> impl Transform {
    one_of("at_least_one_of", fields, ">= 1", "at least one of the fields in", "must be set")
}

/// The rule and the message equal those of controller-gen.
fn one_of<'a>(
    name: &'static str,
    fields: impl IntoIterator<Item = &'a str>,
    bound: &str,
    before: &str,
    after: &str,
) -> impl Transform {
    let fields: Vec<String> = fields.into_iter().map(str::to_owned).collect();
    let set: Vec<String> = fields
        .iter()
        .map(|field| format!("has(self.{})", escape_name(field).unwrap_or(field.as_str().into())))
        .collect();
    let rule = json!({
        "rule": format!("[{}].filter(x,x==true).size() {bound}", set.join(",")),
        "message": format!("{before} [{}] {after}", fields.join(" ")),
    });
    move |schema: &mut Schema| {
        let map = schema.ensure_object();
        add_rule(map, rule.clone());
        note::has_fields(map, name, &fields);
    }
}

fn add_rule(map: &mut Map<String, Value>, rule: Value) {
    match map.entry("x-kubernetes-validations").or_insert_with(|| json!([])) {
        Value::Array(rules) => rules.push(rule),
        other => *other = json!([rule]),
    }
}

/// `x-kubernetes-embedded-resource`: a complete object of any kind, with `apiVersion`, `kind` and `metadata`.
pub fn embedded_resource() -> impl Transform {
    |schema: &mut Schema| {
        let map = schema.ensure_object();
        // Set by a map, but the API server forbids it here.
        map.remove("additionalProperties");
        map.insert("type".to_owned(), "object".into());
        map.insert("x-kubernetes-embedded-resource".to_owned(), true.into());
        if !["properties", "$ref", "anyOf"].iter().any(|key| map.contains_key(*key)) {
            map.insert("x-kubernetes-preserve-unknown-fields".to_owned(), true.into());
        }
    }
}

/// Any object, regardless of the Rust type (controller-gen's `Schemaless` and `PreserveUnknownFields`). A
/// field of type `serde_json::Value` needs no marker and accepts any JSON.
pub fn any() -> impl Transform {
    |schema: &mut Schema| {
        replace(schema, json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true }));
    }
}

/// `x-kubernetes-int-or-string`, regardless of the Rust type. `IntOrString` and `Quantity` need no marker.
pub fn int_or_string() -> impl Transform {
    |schema: &mut Schema| replace(schema, union::int_or_string())
}

/// Makes an internally tagged enum (`#[serde(tag = "type")]`) a structural schema. Without it, kube's
/// generator panics.
pub fn union() -> impl Transform {
    |schema: &mut Schema| union::flatten(schema.ensure_object())
}

/// Applies a marker to the items of a list: controller-gen's `items:*`.
pub fn items(marker: impl Transform) -> impl Transform {
    within("items", "items", LIST, marker)
}

/// Applies a marker to the values of a map.
pub fn values(marker: impl Transform) -> impl Transform {
    within("values", "additionalProperties", OBJECT, marker)
}

fn within(
    name: &'static str,
    key: &'static str,
    on: &'static [&'static str],
    mut marker: impl Transform,
) -> impl Transform {
    move |schema: &mut Schema| {
        let map = schema.ensure_object();
        if let Some(inner) = map.get_mut(key).and_then(|inner| <&mut Schema>::try_from(inner).ok()) {
            marker.transform(inner);
            note::fits(map, name, on, []);
        } else {
            note::misses(map, name, key);
        }
    }
}

/// Replaces a schema, except for its title and description.
fn replace(schema: &mut Schema, with: Value) {
    let map = schema.ensure_object();
    map.retain(|key, _| {
        matches!(key.as_str(), "description" | "title" | "default" | "examples" | "example" | "nullable")
            || matches!(key.as_str(), "externalDocs" | "x-kubernetes-validations" | note::KEY)
    });
    if let Value::Object(with) = with {
        map.extend(with);
    }
}

#[cfg(test)]
mod tests;
