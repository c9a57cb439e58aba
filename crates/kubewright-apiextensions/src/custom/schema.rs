//! Compiled structural schema.
//!
//! Parses `openAPIV3Schema`. Does not check that the schema is structural; CRD validation does. As upstream,
//! an invalid pattern is kept and fails every string.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::allowed::Allowed;
use super::format::Format;
use super::pattern::{Matcher, Pattern};

/// A compiled schema. The empty schema declares no fields and accepts every value.
#[derive(Debug, Clone, Default)]
pub struct Schema {
    /// The allowed types.
    pub types: Types,
    /// Whether null is allowed.
    pub nullable: bool,
    /// The enforced format. Unknown formats are dropped.
    pub format: Option<Format>,
    /// `enum`; `None` if any value is allowed.
    pub allowed: Option<Box<Allowed>>,
    /// Declared fields of an object.
    pub properties: BTreeMap<String, Schema>,
    /// `additionalProperties`.
    pub additional: Option<Additional>,
    /// The schema of list items.
    pub items: Option<Box<Schema>>,
    /// Required fields.
    pub required: Vec<String>,
    /// Constraints on numbers.
    pub number: Option<Box<NumberBounds>>,
    /// Constraints on strings.
    pub string: Option<Box<StringBounds>>,
    /// Constraints on the number of items or fields.
    pub size: Option<Box<SizeBounds>>,
    /// `allOf`, `anyOf`, `oneOf` and `not`.
    pub junctors: Option<Box<Junctors>>,
    /// The default. Never null.
    pub default: Option<Value>,
    /// `x-kubernetes-preserve-unknown-fields`.
    pub preserve_unknown_fields: bool,
    /// `x-kubernetes-int-or-string`.
    pub int_or_string: bool,
    /// `x-kubernetes-embedded-resource`.
    pub embedded_resource: bool,
    /// `x-kubernetes-list-type`.
    pub list_type: Option<ListType>,
    /// `x-kubernetes-list-map-keys`.
    pub list_map_keys: Vec<String>,
    /// Whether `x-kubernetes-map-type` is `atomic`.
    pub atomic_map: bool,
    /// `x-kubernetes-validations`, unparsed.
    pub validations: Vec<Value>,
    /// Features used in this schema or its subschemas, so that walks can stop early.
    pub contains: Contains,
}

/// Features used in a schema or its subschemas.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Contains {
    /// Defaults.
    pub defaults: bool,
    /// Embedded resources.
    pub embedded: bool,
    /// Lists of type `set` or `map`.
    pub unique_lists: bool,
    /// CEL rules.
    pub rules: bool,
    /// Patterns that may need much CPU time even for short values.
    pub costly_patterns: bool,
}

impl Contains {
    fn add(&mut self, other: Self) {
        self.defaults |= other.defaults;
        self.embedded |= other.embedded;
        self.unique_lists |= other.unique_lists;
        self.rules |= other.rules;
        self.costly_patterns |= other.costly_patterns;
    }
}

/// `additionalProperties`.
#[derive(Debug, Clone)]
pub enum Additional {
    /// A bool.
    Allowed(bool),
    /// A schema.
    Schema(Box<Schema>),
}

/// `x-kubernetes-list-type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListType {
    /// `atomic`.
    Atomic,
    /// `set`.
    Set,
    /// `map`.
    Map,
}

/// Constraints on numbers.
#[derive(Debug, Clone, Default)]
pub struct NumberBounds {
    /// `minimum`
    pub minimum: Option<f64>,
    /// `exclusiveMinimum`
    pub exclusive_minimum: bool,
    /// `maximum`
    pub maximum: Option<f64>,
    /// `exclusiveMaximum`
    pub exclusive_maximum: bool,
    /// `multipleOf`
    pub multiple_of: Option<f64>,
}

/// Constraints on strings. Lengths count characters.
#[derive(Debug, Clone, Default)]
pub struct StringBounds {
    /// `minLength`
    pub min_length: Option<i64>,
    /// `maxLength`
    pub max_length: Option<i64>,
    /// `pattern`
    pub pattern: Option<Pattern>,
}

/// Constraints on the number of items or fields.
#[derive(Debug, Clone, Default)]
pub struct SizeBounds {
    /// `minItems`
    pub min_items: Option<i64>,
    /// `maxItems`
    pub max_items: Option<i64>,
    /// `uniqueItems`
    pub unique_items: bool,
    /// `minProperties`
    pub min_properties: Option<i64>,
    /// `maxProperties`
    pub max_properties: Option<i64>,
}

/// Logical junctors. They add constraints but declare no fields.
#[derive(Debug, Clone, Default)]
pub struct Junctors {
    /// All must match.
    pub all_of: Vec<Schema>,
    /// At least one must match.
    pub any_of: Vec<Schema>,
    /// Exactly one must match.
    pub one_of: Vec<Schema>,
    /// Must not match.
    pub not: Option<Schema>,
}

/// A JSON type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Type {
    /// `array`
    Array = 1,
    /// `boolean`
    Boolean = 2,
    /// `integer`
    Integer = 4,
    /// `null`
    Null = 8,
    /// `number`
    Number = 16,
    /// `object`
    Object = 32,
    /// `string`
    String = 64,
}

impl Type {
    const ALL: [(Self, &'static str); 7] = [
        (Self::Array, "array"),
        (Self::Boolean, "boolean"),
        (Self::Integer, "integer"),
        (Self::Null, "null"),
        (Self::Number, "number"),
        (Self::Object, "object"),
        (Self::String, "string"),
    ];

    /// The type as schemas and messages name it.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(ty, _)| *ty == self).map_or("", |(_, name)| name)
    }

    /// The type of a value. A number with a fraction or an exponent is not an integer.
    pub fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Boolean,
            Value::Number(number) if number.is_i64() => Self::Integer,
            Value::Number(_) => Self::Number,
            Value::String(_) => Self::String,
            Value::Array(_) => Self::Array,
            Value::Object(_) => Self::Object,
        }
    }
}

/// A set of types; empty means any type.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Types(u8);

impl Types {
    /// A set with one type.
    pub fn only(ty: Type) -> Self {
        Self(ty as u8)
    }

    /// Whether any type is allowed.
    pub fn is_any(self) -> bool {
        self.0 == 0
    }

    /// Whether the set lists `ty`.
    pub fn contains(self, ty: Type) -> bool {
        self.0 & ty as u8 != 0
    }

    /// The type, if the set lists exactly one.
    pub fn single(self) -> Option<Type> {
        Type::ALL.iter().find(|(ty, _)| *ty as u8 == self.0).map(|(ty, _)| *ty)
    }
}

impl std::fmt::Display for Types {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let named: Vec<&str> =
            Type::ALL.iter().filter(|(ty, _)| self.contains(*ty)).map(|(_, name)| *name).collect();
        f.write_str(&named.join(","))
    }
}

/// Why a schema does not compile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// The schema is not an object.
    #[error("a schema must be an object")]
    NotAnObject,
    /// An unsupported keyword. The text is upstream's.
    #[error("OpenAPIV3Schema '{0}' is not supported")]
    Unsupported(&'static str),
    /// `items` is a list of schemas.
    #[error("OpenAPIV3Schema 'items' must be a schema, but is an array")]
    ItemsArray,
    /// An unknown type.
    #[error("unknown type {0:?}")]
    UnknownType(String),
}

const UNSUPPORTED: [&str; 7] =
    ["id", "$schema", "$ref", "patternProperties", "dependencies", "additionalItems", "definitions"];

impl Schema {
    /// Compiles `openAPIV3Schema`.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        let Value::Object(source) = schema else { return Err(SchemaError::NotAnObject) };
        for keyword in UNSUPPORTED {
            if source.get(keyword).is_some_and(|value| !is_empty(value)) {
                return Err(SchemaError::Unsupported(if keyword == "$schema" { "schema" } else { keyword }));
            }
        }
        let int_or_string = flag(source, "x-kubernetes-int-or-string");
        let types = types(source, int_or_string)?;
        let mut compiled = Self {
            types,
            nullable: flag(source, "nullable"),
            format: source.get("format").and_then(Value::as_str).and_then(|name| Format::of(name, types)),
            allowed: Some(list(source, "enum"))
                .filter(|values| !values.is_empty())
                .map(|values| Box::new(Allowed::new(values))),
            properties: properties(source)?,
            additional: additional(source)?,
            items: items(source)?,
            required: strings(source, "required"),
            number: number(source),
            string: string(source),
            size: size(source),
            junctors: junctors(source)?,
            default: source.get("default").filter(|default| !default.is_null()).cloned(),
            preserve_unknown_fields: flag(source, "x-kubernetes-preserve-unknown-fields"),
            int_or_string,
            embedded_resource: flag(source, "x-kubernetes-embedded-resource"),
            list_type: match source.get("x-kubernetes-list-type").and_then(Value::as_str) {
                Some("set") => Some(ListType::Set),
                Some("map") => Some(ListType::Map),
                Some(_) => Some(ListType::Atomic),
                None => None,
            },
            list_map_keys: strings(source, "x-kubernetes-list-map-keys"),
            atomic_map: source.get("x-kubernetes-map-type").is_some_and(|kind| kind == "atomic"),
            validations: list(source, "x-kubernetes-validations").to_vec(),
            contains: Contains::default(),
        };
        compiled.contains = compiled.contained();
        Ok(compiled)
    }

    /// The schema of a field: from `properties` or `additionalProperties`.
    pub fn field(&self, name: &str) -> Option<&Self> {
        self.properties.get(name).or_else(|| self.additional_schema())
    }

    /// The schema of `additionalProperties`.
    pub fn additional_schema(&self) -> Option<&Self> {
        match &self.additional {
            Some(Additional::Schema(schema)) => Some(schema),
            _ => None,
        }
    }

    fn pattern(&self) -> Option<&Matcher> {
        self.string.as_ref()?.pattern.as_ref()?.matcher().ok()
    }

    fn contained(&self) -> Contains {
        let mut contains = Contains {
            defaults: self.default.is_some(),
            embedded: self.embedded_resource,
            unique_lists: matches!(self.list_type, Some(ListType::Set | ListType::Map)),
            rules: !self.validations.is_empty(),
            costly_patterns: self.pattern().is_some_and(Matcher::is_costly),
        };
        let below = self.properties.values().chain(self.additional_schema()).chain(self.items.as_deref());
        for schema in below {
            contains.add(schema.contains);
        }
        if let Some(joined) = &self.junctors {
            let parts = joined.all_of.iter().chain(&joined.any_of).chain(&joined.one_of).chain(&joined.not);
            for part in parts {
                contains.rules |= part.contains.rules;
                contains.costly_patterns |= part.contains.costly_patterns;
            }
        }
        contains
    }
}

fn types(source: &Map<String, Value>, int_or_string: bool) -> Result<Types, SchemaError> {
    if int_or_string {
        return Ok(Types(Type::Integer as u8 | Type::String as u8));
    }
    match source.get("type").and_then(Value::as_str) {
        None | Some("") => Ok(Types::default()),
        Some(name) => Type::ALL
            .iter()
            .find(|(_, known)| *known == name)
            .map(|(ty, _)| Types::only(*ty))
            .ok_or_else(|| SchemaError::UnknownType(name.to_owned())),
    }
}

fn properties(source: &Map<String, Value>) -> Result<BTreeMap<String, Schema>, SchemaError> {
    let properties = source.get("properties").and_then(Value::as_object);
    let compiled =
        properties.into_iter().flatten().map(|(name, schema)| Ok((name.clone(), Schema::compile(schema)?)));
    compiled.collect()
}

fn additional(source: &Map<String, Value>) -> Result<Option<Additional>, SchemaError> {
    match source.get("additionalProperties") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(allowed)) => Ok(Some(Additional::Allowed(*allowed))),
        Some(schema) => Ok(Some(Additional::Schema(Box::new(Schema::compile(schema)?)))),
    }
}

fn items(source: &Map<String, Value>) -> Result<Option<Box<Schema>>, SchemaError> {
    match source.get("items") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(_)) => Err(SchemaError::ItemsArray),
        Some(schema) => Ok(Some(Box::new(Schema::compile(schema)?))),
    }
}

fn number(source: &Map<String, Value>) -> Option<Box<NumberBounds>> {
    let bound = |name: &str| source.get(name).and_then(Value::as_f64);
    let bounds = NumberBounds {
        minimum: bound("minimum"),
        exclusive_minimum: flag(source, "exclusiveMinimum"),
        maximum: bound("maximum"),
        exclusive_maximum: flag(source, "exclusiveMaximum"),
        multiple_of: bound("multipleOf"),
    };
    let some = bounds.minimum.is_some() || bounds.maximum.is_some() || bounds.multiple_of.is_some();
    some.then(|| Box::new(bounds))
}

fn string(source: &Map<String, Value>) -> Option<Box<StringBounds>> {
    let bounds = StringBounds {
        min_length: source.get("minLength").and_then(Value::as_i64),
        max_length: source.get("maxLength").and_then(Value::as_i64),
        pattern: source
            .get("pattern")
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
            .map(Pattern::new),
    };
    let some = bounds.min_length.is_some() || bounds.max_length.is_some() || bounds.pattern.is_some();
    some.then(|| Box::new(bounds))
}

fn size(source: &Map<String, Value>) -> Option<Box<SizeBounds>> {
    let bound = |name: &str| source.get(name).and_then(Value::as_i64);
    let bounds = SizeBounds {
        min_items: bound("minItems"),
        max_items: bound("maxItems"),
        unique_items: flag(source, "uniqueItems"),
        min_properties: bound("minProperties"),
        max_properties: bound("maxProperties"),
    };
    let some = bounds.min_items.is_some()
        || bounds.max_items.is_some()
        || bounds.unique_items
        || bounds.min_properties.is_some()
        || bounds.max_properties.is_some();
    some.then(|| Box::new(bounds))
}

fn junctors(source: &Map<String, Value>) -> Result<Option<Box<Junctors>>, SchemaError> {
    let all = |name: &str| list(source, name).iter().map(Schema::compile).collect::<Result<Vec<_>, _>>();
    let junctors = Junctors {
        all_of: all("allOf")?,
        any_of: all("anyOf")?,
        one_of: all("oneOf")?,
        not: source.get("not").filter(|not| !not.is_null()).map(Schema::compile).transpose()?,
    };
    let some = !junctors.all_of.is_empty()
        || !junctors.any_of.is_empty()
        || !junctors.one_of.is_empty()
        || junctors.not.is_some();
    Ok(some.then(|| Box::new(junctors)))
}

fn flag(source: &Map<String, Value>, name: &str) -> bool {
    source.get(name).and_then(Value::as_bool).unwrap_or_default()
}

fn list<'a>(source: &'a Map<String, Value>, name: &str) -> &'a [Value] {
    source.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn strings(source: &Map<String, Value>, name: &str) -> Vec<String> {
    list(source, name).iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_empty_schema_is_the_default_one() {
        let schema = Schema::compile(&json!({})).unwrap();
        assert!(schema.types.is_any());
        assert!(schema.number.is_none() && schema.string.is_none() && schema.size.is_none());
        assert!(schema.junctors.is_none());
    }

    #[test]
    fn int_or_string_allows_both_types() {
        let schema = Schema::compile(&json!({"x-kubernetes-int-or-string": true})).unwrap();
        assert_eq!(schema.types.to_string(), "integer,string");
        assert_eq!(schema.types.single(), None);
    }

    #[test]
    fn features_of_subschemas_are_known_at_the_root() {
        let schema = Schema::compile(&json!({"type": "object", "properties": {
            "a": {"type": "array", "items": {"type": "object", "additionalProperties": {"type": "string", "default": "x"}}},
            "c": {"anyOf": [{"pattern": "([^a]{1,60}){1,60}"}]},
            "b": {"type": "string", "x-kubernetes-validations": [{"rule": "true"}]},
        }}))
        .unwrap();
        assert_eq!(
            schema.contains,
            Contains { defaults: true, rules: true, costly_patterns: true, ..Contains::default() }
        );
    }

    #[test]
    fn unsupported_keywords_are_rejected() {
        assert_eq!(
            Schema::compile(&json!({"properties": {"a": {"$ref": "#/x"}}})).unwrap_err(),
            SchemaError::Unsupported("$ref")
        );
        assert_eq!(Schema::compile(&json!({"items": [{}]})).unwrap_err(), SchemaError::ItemsArray);
        assert_eq!(Schema::compile(&json!(true)).unwrap_err(), SchemaError::NotAnObject);
    }
}
