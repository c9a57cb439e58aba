//! The parts of a structural schema that CEL uses, and the types it declares.
//!
//! A [`Schema`] is parsed from the `openAPIV3Schema` of a CRD, which must already be validated as structural.
//! A [`DeclType`] adds the limits for cost estimation: the maximum number of elements of a value and its
//! minimum serialized size.

mod decl;

use std::collections::BTreeMap;

use serde_json::{Map as JsonMap, Value as Json};

pub(crate) use decl::DeclType;

/// One node of a structural schema.
#[derive(Debug, Clone, Default)]
pub(crate) struct Schema {
    pub(crate) type_name: String,
    pub(crate) format: String,
    pub(crate) nullable: bool,
    pub(crate) int_or_string: bool,
    pub(crate) embedded_resource: bool,
    pub(crate) preserve_unknown: bool,
    pub(crate) list_type: Option<String>,
    pub(crate) list_map_keys: Vec<String>,
    pub(crate) map_type: Option<String>,
    pub(crate) items: Option<Box<Schema>>,
    /// The declared properties, including those that CEL cannot access.
    declared: BTreeMap<String, Schema>,
    /// The properties that CEL can access, where they differ: the root of a resource exposes only part of its
    resource: Option<BTreeMap<String, Schema>>,
    pub(crate) additional: Option<Box<Schema>>,
    /// Whether `additionalProperties` is set, as a schema or as a bool.
    pub(crate) has_additional: bool,
    pub(crate) max_items: Option<i64>,
    pub(crate) max_length: Option<i64>,
    pub(crate) max_properties: Option<i64>,
    pub(crate) required: Vec<String>,
    pub(crate) has_default: bool,
    /// The length of the longest `enum` string in bytes, if there is an enum.
    longest_enum: Option<usize>,
    pub(crate) rules: Vec<Rule>,
    pub(crate) all_of: Vec<Schema>,
}

/// One entry of `x-kubernetes-validations`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Rule {
    /// The CEL expression.
    pub(crate) expression: String,
    pub(crate) message: String,
    pub(crate) message_expression: String,
    pub(crate) reason: Option<String>,
    pub(crate) field_path: String,
    pub(crate) optional_old_self: Option<bool>,
}

impl Schema {
    /// Parses the schema of a whole resource.
    pub(crate) fn root(json: &Json) -> Self {
        let mut schema = Self::part(json);
        schema.see_as_resource();
        schema
    }

    /// Parses a subschema. It can be an embedded resource.
    pub(crate) fn part(json: &Json) -> Self {
        let text = |name: &str| json.get(name).and_then(Json::as_str).unwrap_or_default().to_owned();
        let flag = |name: &str| json.get(name).and_then(Json::as_bool).unwrap_or_default();
        let number = |name: &str| json.get(name).and_then(Json::as_i64);
        let texts = |name: &str| -> Vec<String> {
            let list = json.get(name).and_then(Json::as_array).map_or(&[] as &[_], Vec::as_slice);
            list.iter().filter_map(Json::as_str).map(str::to_owned).collect()
        };
        let nested = |name: &str| {
            json.get(name).filter(|value| value.is_object()).map(|value| Box::new(Self::part(value)))
        };
        let each = |name: &str| json.get(name).and_then(Json::as_array).map_or(&[] as &[_], Vec::as_slice);
        let properties = json.get("properties").and_then(Json::as_object);
        let longest =
            |values: &Vec<Json>| values.iter().filter_map(Json::as_str).map(str::len).max().unwrap_or(0);
        let mut schema = Self {
            type_name: text("type"),
            format: text("format"),
            nullable: flag("nullable"),
            int_or_string: flag("x-kubernetes-int-or-string"),
            embedded_resource: flag("x-kubernetes-embedded-resource"),
            preserve_unknown: flag("x-kubernetes-preserve-unknown-fields"),
            list_type: json.get("x-kubernetes-list-type").and_then(Json::as_str).map(str::to_owned),
            list_map_keys: texts("x-kubernetes-list-map-keys"),
            map_type: json.get("x-kubernetes-map-type").and_then(Json::as_str).map(str::to_owned),
            items: nested("items"),
            declared: properties.map(of_properties).unwrap_or_default(),
            resource: None,
            additional: nested("additionalProperties"),
            has_additional: json.get("additionalProperties").is_some_and(|value| !value.is_null()),
            max_items: number("maxItems"),
            max_length: number("maxLength"),
            max_properties: number("maxProperties"),
            required: texts("required"),
            has_default: json.get("default").is_some_and(|value| !value.is_null()),
            longest_enum: json.get("enum").and_then(Json::as_array).filter(|e| !e.is_empty()).map(longest),
            rules: each("x-kubernetes-validations").iter().map(Rule::of).collect(),
            all_of: each("allOf").iter().map(Self::part).collect(),
        };
        if schema.embedded_resource {
            schema.see_as_resource();
        }
        schema
    }

    /// The declared properties, if any.
    pub(crate) fn declared(&self) -> Option<&BTreeMap<String, Schema>> {
        (!self.declared.is_empty()).then_some(&self.declared)
    }

    /// The properties that CEL can access; `None` if there are none, as in maps.
    pub(crate) fn properties(&self) -> Option<&BTreeMap<String, Schema>> {
        self.resource.as_ref().or_else(|| self.declared())
    }

    /// The schema of the property `name`, if CEL can access it.
    pub(crate) fn property(&self, name: &str) -> Option<&Schema> {
        match self.properties() {
            Some(properties) => properties.get(name),
            None => self.additional.as_deref(),
        }
    }

    /// Whether this schema or a subschema has rules.
    pub(crate) fn has_rules(&self) -> bool {
        !self.rules.is_empty()
            || self.items.iter().chain(&self.additional).any(|schema| schema.has_rules())
            || self.declared.values().any(Schema::has_rules)
    }

    /// Declares `apiVersion`, `kind` and `metadata` with its two names, unless the schema already does.
    fn see_as_resource(&mut self) {
        let string = || Self { type_name: "string".to_owned(), ..Self::default() };
        let is_string = |of: &BTreeMap<String, Schema>, name: &str| {
            of.get(name).is_some_and(|schema| schema.type_name == "string")
        };
        let names_are_declared = self.declared.get("metadata").is_some_and(|metadata| {
            metadata.type_name == "object"
                && is_string(&metadata.declared, "name")
                && is_string(&metadata.declared, "generateName")
        });
        if names_are_declared && is_string(&self.declared, "kind") && is_string(&self.declared, "apiVersion")
        {
            return;
        }
        let mut properties = self.declared.clone();
        properties.insert("kind".to_owned(), string());
        properties.insert("apiVersion".to_owned(), string());
        let names = ["name", "generateName"].map(|name| (name.to_owned(), string()));
        let metadata =
            Self { type_name: "object".to_owned(), declared: names.into_iter().collect(), ..Self::default() };
        properties.insert("metadata".to_owned(), metadata);
        self.resource = Some(properties);
    }
}

fn of_properties(properties: &JsonMap<String, Json>) -> BTreeMap<String, Schema> {
    properties.iter().map(|(name, schema)| (name.clone(), Schema::part(schema))).collect()
}

impl Rule {
    fn of(json: &Json) -> Self {
        let text = |name: &str| json.get(name).and_then(Json::as_str).unwrap_or_default().to_owned();
        Self {
            expression: text("rule"),
            message: text("message"),
            message_expression: text("messageExpression"),
            reason: json.get("reason").and_then(Json::as_str).map(str::to_owned),
            field_path: text("fieldPath"),
            optional_old_self: json.get("optionalOldSelf").and_then(Json::as_bool),
        }
    }
}
