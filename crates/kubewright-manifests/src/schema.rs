//! Markers: what a field or a type says about its schema and neither schemars nor kube has an attribute for.
//!
//! A marker is a function, and stands in schemars' `transform` attribute, so the compiler checks its name and what it
//! is given:
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
//! A marker writes its keywords at once, so they are in every schema that schemars makes. Whether the marker fits what
//! it stands at is known only when the whole schema is there; a note under a key of ours says what it wants, and
//! [`crd::of`](crate::crd::of) takes the notes out again and tells what does not fit.

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

/// One marker: a [`Transform`] for schemars' attribute of that name.
#[derive(Clone, Debug)]
#[must_use = "a marker does something in #[schemars(transform = ...)] only"]
pub struct Marker {
    name: &'static str,
    /// The types that it fits; none for all.
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

/// `minimum`: the least that a number may be.
pub fn minimum(least: impl Numeric) -> Marker {
    Marker::new("minimum", NUMBERS, "minimum", least.to_json())
}

/// `maximum`: the most that a number may be.
pub fn maximum(most: impl Numeric) -> Marker {
    Marker::new("maximum", NUMBERS, "maximum", most.to_json())
}

/// `minimum` with `exclusiveMinimum`: a number is above this.
pub fn exclusive_minimum(bound: impl Numeric) -> Marker {
    Marker::new("exclusive_minimum", NUMBERS, "minimum", bound.to_json()).and("exclusiveMinimum", true)
}

/// `maximum` with `exclusiveMaximum`: a number is below this.
pub fn exclusive_maximum(bound: impl Numeric) -> Marker {
    Marker::new("exclusive_maximum", NUMBERS, "maximum", bound.to_json()).and("exclusiveMaximum", true)
}

/// `multipleOf`: a number is a multiple of this.
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

/// `pattern`: a regular expression that a string has a match of, in RE2's syntax.
pub fn pattern(expression: &str) -> Marker {
    Marker::new("pattern", STRING, "pattern", expression)
}

/// `format` of a string or a number, as the API server knows it.
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

/// `minProperties`: how many entries a map has at least.
pub fn min_properties(least: u64) -> Marker {
    Marker::new("min_properties", OBJECT, "minProperties", least)
}

/// `maxProperties`: how many entries a map has at most.
pub fn max_properties(most: u64) -> Marker {
    Marker::new("max_properties", OBJECT, "maxProperties", most)
}

/// `enum`: the values that there are. A Rust enum says it better.
pub fn enumeration<V: Into<Value>>(values: impl IntoIterator<Item = V>) -> Marker {
    let values: Vec<Value> = values.into_iter().map(Into::into).collect();
    let on = match values.first() {
        Some(Value::String(_)) => STRING,
        Some(Value::Number(_)) => NUMBERS,
        _ => ANY,
    };
    Marker::new("enumeration", on, "enum", values)
}

/// `nullable`: the field may be there with nothing in it, which is not the same as its absence.
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

/// `externalDocs`: where more is written about it.
pub fn external_docs(url: &str, description: &str) -> Marker {
    let mut docs = json!({ "url": url });
    if !description.is_empty() {
        docs["description"] = description.into();
    }
    Marker::new("external_docs", ANY, "externalDocs", docs)
}

/// `x-kubernetes-preserve-unknown-fields`: what the schema does not know is kept.
pub fn preserve_unknown_fields() -> Marker {
    Marker::new("preserve_unknown_fields", ANY, "x-kubernetes-preserve-unknown-fields", true)
}

/// `x-kubernetes-map-type: atomic` on a struct or a map: whoever applies it owns it whole.
pub fn atomic_struct() -> Marker {
    Marker::new("atomic_struct", OBJECT, "x-kubernetes-map-type", "atomic")
}

/// `x-kubernetes-list-type: atomic`: whoever applies a list owns it whole.
pub fn list_atomic() -> Marker {
    Marker::new("list_atomic", LIST, "x-kubernetes-list-type", "atomic")
}

/// `x-kubernetes-list-type: set`: each value is in a list once, and owned on its own.
pub fn list_set() -> Marker {
    Marker::new("list_set", LIST, "x-kubernetes-list-type", "set")
}

/// `x-kubernetes-list-type: map`: the items of a list are told apart by these fields, and owned one by one.
pub fn list_map<'a>(keys: impl IntoIterator<Item = &'a str>) -> Marker {
    let keys: Vec<&str> = keys.into_iter().collect();
    Marker::new("list_map", LIST, "x-kubernetes-list-type", "map").and("x-kubernetes-list-map-keys", keys)
}

/// `x-kubernetes-validations`: one more rule in CEL. As kube's `#[x_kube(validation = ...)]`, and it also works on
/// enums and inside [`items`].
pub fn validation(rule: impl Into<Rule>) -> impl Transform {
    let rule = serde_json::to_value(rule.into()).unwrap_or_default();
    move |schema: &mut Schema| add_rule(schema.ensure_object(), rule.clone())
}

/// A field that stays what it is once it is set: `k8s:immutable`.
pub fn immutable() -> impl Transform {
    validation(Rule::new("self == oldSelf").message("field is immutable"))
}

/// Of these fields, named as in JSON, at most one is set.
pub fn at_most_one_of<'a>(fields: impl IntoIterator<Item = &'a str>) -> impl Transform {
    one_of("at_most_one_of", fields, "<= 1", "at most one of the fields in", "may be set")
}

/// Of these fields, named as in JSON, exactly one is set. An externally tagged enum says it better.
pub fn exactly_one_of<'a>(fields: impl IntoIterator<Item = &'a str>) -> impl Transform {
    one_of("exactly_one_of", fields, "== 1", "exactly one of the fields in", "must be set")
}

/// Of these fields, named as in JSON, at least one is set.
pub fn at_least_one_of<'a>(fields: impl IntoIterator<Item = &'a str>) -> impl Transform {
    one_of("at_least_one_of", fields, ">= 1", "at least one of the fields in", "must be set")
}

/// The rule and its message are controller-gen's, letter by letter.
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

/// `x-kubernetes-embedded-resource`: a whole object of any kind, with `apiVersion`, `kind` and `metadata`.
pub fn embedded_resource() -> impl Transform {
    |schema: &mut Schema| {
        let map = schema.ensure_object();
        // A map says this, and the API server forbids it here.
        map.remove("additionalProperties");
        map.insert("type".to_owned(), "object".into());
        map.insert("x-kubernetes-embedded-resource".to_owned(), true.into());
        if !["properties", "$ref", "anyOf"].iter().any(|key| map.contains_key(*key)) {
            map.insert("x-kubernetes-preserve-unknown-fields".to_owned(), true.into());
        }
    }
}

/// Any object: nothing is said of what is in it, whatever the Rust type says (`Schemaless` and
/// `PreserveUnknownFields` in one). A field of `serde_json::Value` needs no marker, and takes any JSON.
pub fn any() -> impl Transform {
    |schema: &mut Schema| {
        replace(schema, json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true }));
    }
}

/// `x-kubernetes-int-or-string`, whatever the Rust type says. `IntOrString` and `Quantity` need no marker.
pub fn int_or_string() -> impl Transform {
    |schema: &mut Schema| replace(schema, union::int_or_string())
}

/// Makes of an enum that has a tag within its variants what a definition can hold: `#[serde(tag = "type")]` on the
/// enum, this beside it. Without it kube's own generator panics.
pub fn union() -> impl Transform {
    |schema: &mut Schema| union::flatten(schema.ensure_object())
}

/// A marker for the items of a list and not for the list: `items:*`.
pub fn items(marker: impl Transform) -> impl Transform {
    within("items", "items", LIST, marker)
}

/// A marker for the values of a map and not for the map.
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

/// Leaves of a schema what people read, and says the rest anew.
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
