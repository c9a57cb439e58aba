//! The structural schema of a version of a CRD.
//!
//! [`Structural::parse`] is the only reader of `openAPIV3Schema`. Pruning, defaulting and validation of custom
//! resources use a [`Structural`] directly; CEL rules ([`rules`](Structural::rules)), server-side apply
//! ([`type_def`](Structural::type_def)) and published OpenAPI ([`to_openapi`](Structural::to_openapi)) are derived
//! from it. As upstream, an invalid pattern is kept and fails every string.
//!
//! Does not check that the schema is structural. Validation of the CRD does ([`crd`](crate::crd)); like upstream's, it
//! reads the document as the user wrote it.

mod allowed;
mod format;
mod merge;
mod openapi;
mod parse;
mod pattern;
mod rules;

use std::collections::BTreeMap;

use kubewright_cel::rules::Rule;
use serde_json::{Number, Value};

pub use allowed::Allowed;
pub use format::{Format, FormatKind};
pub use parse::SchemaError;
pub use pattern::{Matcher, Pattern, TooCostly, compile as compile_pattern};

/// One node of a structural schema. The empty schema declares no fields and accepts every value.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Structural {
    /// `type`; `None` if any type is allowed.
    pub ty: Option<Type>,
    /// A `type` that does not exist. Only CRDs that were stored before upstream rejected them have it.
    pub unknown_type: Option<Box<str>>,
    /// `nullable`
    pub nullable: bool,
    /// `format`
    pub format: Option<Format>,
    /// `enum`; `None` if any value is allowed.
    pub allowed: Option<Box<Allowed>>,
    /// Declared fields of an object.
    pub properties: BTreeMap<String, Structural>,
    /// `additionalProperties`
    pub additional: Option<Additional>,
    /// The schema of list items.
    pub items: Option<Box<Structural>>,
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
    /// `x-kubernetes-preserve-unknown-fields`
    pub preserve_unknown_fields: bool,
    /// `x-kubernetes-int-or-string`
    pub int_or_string: bool,
    /// `x-kubernetes-embedded-resource`
    pub embedded_resource: bool,
    /// `x-kubernetes-list-type`
    pub list_type: Option<ListType>,
    /// `x-kubernetes-list-map-keys`
    pub list_map_keys: Vec<String>,
    /// `x-kubernetes-map-type`
    pub map_type: Option<MapType>,
    /// `x-kubernetes-validations`
    pub validations: Vec<Rule>,
    /// Texts for users.
    pub docs: Option<Box<Docs>>,
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
    /// Patterns.
    pub patterns: bool,
}

impl Contains {
    fn add(&mut self, other: Self) {
        self.defaults |= other.defaults;
        self.embedded |= other.embedded;
        self.unique_lists |= other.unique_lists;
        self.rules |= other.rules;
        self.patterns |= other.patterns;
    }
}

/// `additionalProperties`.
#[derive(Debug, Clone, PartialEq)]
pub enum Additional {
    /// A bool.
    Allowed(bool),
    /// A schema.
    Schema(Box<Structural>),
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

impl ListType {
    /// The name in schemas.
    pub fn name(self) -> &'static str {
        match self {
            Self::Atomic => "atomic",
            Self::Set => "set",
            Self::Map => "map",
        }
    }
}

/// `x-kubernetes-map-type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MapType {
    /// `atomic`.
    Atomic,
    /// `granular`.
    Granular,
}

impl MapType {
    /// The name in schemas.
    pub fn name(self) -> &'static str {
        match self {
            Self::Atomic => "atomic",
            Self::Granular => "granular",
        }
    }
}

/// Texts for users, which are published and have no effect.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Docs {
    /// `title`
    pub title: String,
    /// `description`
    pub description: String,
    /// `externalDocs`
    pub external_docs: Option<Value>,
    /// `example`
    pub example: Option<Value>,
}

/// Constraints on numbers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NumberBounds {
    /// `minimum`
    pub minimum: Option<Number>,
    /// `exclusiveMinimum`
    pub exclusive_minimum: bool,
    /// `maximum`
    pub maximum: Option<Number>,
    /// `exclusiveMaximum`
    pub exclusive_maximum: bool,
    /// `multipleOf`
    pub multiple_of: Option<Number>,
}

/// Constraints on strings. Lengths count characters.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StringBounds {
    /// `minLength`
    pub min_length: Option<i64>,
    /// `maxLength`
    pub max_length: Option<i64>,
    /// `pattern`
    pub pattern: Option<Pattern>,
}

/// Constraints on the number of items or fields.
#[derive(Debug, Clone, Default, PartialEq)]
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
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Junctors {
    /// All must match.
    pub all_of: Vec<Structural>,
    /// At least one must match.
    pub any_of: Vec<Structural>,
    /// Exactly one must match.
    pub one_of: Vec<Structural>,
    /// Must not match.
    pub not: Option<Structural>,
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

    /// The type with a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(ty, _)| *ty)
    }

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

impl Structural {
    /// The allowed types.
    pub fn types(&self) -> Types {
        if self.int_or_string {
            return Types(Type::Integer as u8 | Type::String as u8);
        }
        self.ty.map(Types::only).unwrap_or_default()
    }

    /// `type` as in the document; empty if it is not set.
    pub fn type_name(&self) -> &str {
        self.ty.map(Type::name).or(self.unknown_type.as_deref()).unwrap_or_default()
    }

    /// The name and the check of the format, if the server enforces it.
    pub fn enforced_format(&self) -> Option<(&str, FormatKind)> {
        let format = self.format.as_ref()?;
        Some((&format.name, format.kind?))
    }

    /// The first `type` in this schema or its subschemas that does not exist.
    pub fn first_unknown_type(&self) -> Option<&str> {
        let below = || self.parts().chain(self.clauses()).find_map(Self::first_unknown_type);
        self.unknown_type.as_deref().or_else(below)
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

    /// Whether values are validated with patterns that may need much CPU time even for short values. Compiles the
    /// patterns.
    pub fn has_costly_patterns(&self) -> bool {
        let is_costly = |schema: &Self| {
            let pattern = schema.string.as_ref().and_then(|bounds| bounds.pattern.as_ref());
            pattern.is_some_and(|pattern| pattern.matcher().is_ok_and(Matcher::is_costly))
        };
        self.contains.patterns && self.any(&mut |schema| is_costly(schema))
    }

    /// Whether `found` returns true for this schema or any subschema.
    fn any(&self, found: &mut dyn FnMut(&Self) -> bool) -> bool {
        found(self) || self.parts().chain(self.clauses()).any(|schema| schema.any(found))
    }

    /// The schemas of fields and items.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &Self> {
        self.properties.values().chain(self.additional_schema()).chain(self.items.as_deref())
    }

    /// The schemas in `allOf`, `anyOf`, `oneOf` and `not`.
    fn clauses(&self) -> impl Iterator<Item = &Self> {
        self.junctors.iter().flat_map(|joined| {
            joined.all_of.iter().chain(&joined.any_of).chain(&joined.one_of).chain(&joined.not)
        })
    }

    fn contained(&self) -> Contains {
        let mut contains = Contains {
            defaults: self.default.is_some(),
            embedded: self.embedded_resource,
            unique_lists: matches!(self.list_type, Some(ListType::Set | ListType::Map)),
            rules: !self.validations.is_empty(),
            patterns: self.string.as_ref().is_some_and(|bounds| bounds.pattern.is_some()),
        };
        for schema in self.parts() {
            contains.add(schema.contains);
        }
        for clause in self.clauses() {
            contains.rules |= clause.contains.rules;
            contains.patterns |= clause.contains.patterns;
        }
        contains
    }
}
