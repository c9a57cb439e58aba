//! The schema of values that CEL reads, and the types it declares.
//!
//! A [`Schema`] has the keywords of a structural schema that CEL uses. Callers build it from their own form of a
//! schema; this crate does not read `openAPIV3Schema`. A [`DeclType`] adds the limits for cost estimation: the
//! maximum number of elements of a value and its minimum serialized size.

mod decl;

use std::collections::BTreeMap;
use std::ops::Deref;

pub(crate) use decl::DeclType;

/// One node of a structural schema, and the properties that CEL can access.
#[derive(Debug, Clone, Default)]
pub struct Schema {
    keywords: Keywords,
    /// The properties that CEL can access, where they differ from the declared ones: a resource exposes only part of
    /// its metadata.
    resource: Option<BTreeMap<String, Schema>>,
}

/// The keywords of a [`Schema`].
#[derive(Debug, Clone, Default)]
pub struct Keywords {
    /// `type`; empty if it is not set.
    pub type_name: String,
    /// `format`; empty if it is not set.
    pub format: String,
    /// `nullable`
    pub nullable: bool,
    /// `x-kubernetes-int-or-string`
    pub int_or_string: bool,
    /// `x-kubernetes-embedded-resource`
    pub embedded_resource: bool,
    /// `x-kubernetes-preserve-unknown-fields`
    pub preserve_unknown_fields: bool,
    /// `x-kubernetes-list-type`
    pub list_type: Option<String>,
    /// `x-kubernetes-list-map-keys`
    pub list_map_keys: Vec<String>,
    /// `x-kubernetes-map-type`
    pub map_type: Option<String>,
    /// `items`
    pub items: Option<Box<Schema>>,
    /// `properties`, including those that CEL cannot access.
    pub properties: BTreeMap<String, Schema>,
    /// `additionalProperties`, if it is a schema.
    pub additional: Option<Box<Schema>>,
    /// Whether `additionalProperties` is set, as a schema or as a bool.
    pub has_additional: bool,
    /// `maxItems`
    pub max_items: Option<i64>,
    /// `maxLength`
    pub max_length: Option<i64>,
    /// `maxProperties`
    pub max_properties: Option<i64>,
    /// `required`
    pub required: Vec<String>,
    /// Whether `default` is set.
    pub has_default: bool,
    /// The length of the longest `enum` string in bytes, if there is an enum.
    pub longest_enum: Option<usize>,
    /// `x-kubernetes-validations`
    pub rules: Vec<Rule>,
    /// `allOf`
    pub all_of: Vec<Schema>,
}

/// One entry of `x-kubernetes-validations`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rule {
    /// `rule`, the CEL expression.
    pub expression: String,
    /// `message`
    pub message: String,
    /// `messageExpression`
    pub message_expression: String,
    /// `reason`
    pub reason: Option<String>,
    /// `fieldPath`
    pub field_path: String,
    /// `optionalOldSelf`
    pub optional_old_self: Option<bool>,
}

impl From<Keywords> for Schema {
    fn from(keywords: Keywords) -> Self {
        let schema = Self { keywords, resource: None };
        if schema.embedded_resource { schema.into_resource() } else { schema }
    }
}

impl Deref for Schema {
    type Target = Keywords;

    fn deref(&self) -> &Keywords {
        &self.keywords
    }
}

impl Schema {
    /// A schema with a type and no other keywords.
    pub fn of_type(name: &str) -> Self {
        Self::from(Keywords { type_name: name.to_owned(), ..Keywords::default() })
    }

    /// An object with these properties.
    pub fn object<'a>(properties: impl IntoIterator<Item = (&'a str, Self)>) -> Self {
        let properties = properties.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
        Self::from(Keywords { type_name: "object".to_owned(), properties, ..Keywords::default() })
    }

    /// Adds a validation rule.
    #[must_use]
    pub fn with_rule(mut self, rule: Rule) -> Self {
        self.keywords.rules.push(rule);
        self
    }

    /// The declared properties, if any.
    pub(crate) fn declared(&self) -> Option<&BTreeMap<String, Schema>> {
        Some(&self.keywords.properties).filter(|declared| !declared.is_empty())
    }

    /// The properties that CEL can access; `None` if there are none, as in maps.
    pub(crate) fn visible(&self) -> Option<&BTreeMap<String, Schema>> {
        self.resource.as_ref().or_else(|| self.declared())
    }

    /// The schema of the property `name`, if CEL can access it.
    pub(crate) fn property(&self, name: &str) -> Option<&Schema> {
        match self.visible() {
            Some(properties) => properties.get(name),
            None => self.additional.as_deref(),
        }
    }

    /// Whether this schema or a subschema has rules.
    pub(crate) fn has_rules(&self) -> bool {
        !self.rules.is_empty()
            || self.items.iter().chain(&self.additional).any(|schema| schema.has_rules())
            || self.properties.values().any(Schema::has_rules)
    }

    /// The schema of a whole resource: CEL can access `apiVersion`, `kind` and `metadata` with its two names, unless
    /// the schema already declares them.
    pub(crate) fn into_resource(mut self) -> Self {
        let string = || Self::of_type("string");
        let is_string = |of: &BTreeMap<String, Schema>, name: &str| {
            of.get(name).is_some_and(|schema| schema.type_name == "string")
        };
        let declared = &self.keywords.properties;
        let names_are_declared = declared.get("metadata").is_some_and(|metadata| {
            metadata.type_name == "object"
                && is_string(&metadata.properties, "name")
                && is_string(&metadata.properties, "generateName")
        });
        if names_are_declared && is_string(declared, "kind") && is_string(declared, "apiVersion") {
            return self;
        }
        let mut properties = declared.clone();
        properties.insert("kind".to_owned(), string());
        properties.insert("apiVersion".to_owned(), string());
        let metadata = Self::object([("name", string()), ("generateName", string())]);
        properties.insert("metadata".to_owned(), metadata);
        self.resource = Some(properties);
        self
    }
}

impl Rule {
    /// A rule without a message.
    pub fn new(expression: &str) -> Self {
        Self { expression: expression.to_owned(), ..Self::default() }
    }
}
