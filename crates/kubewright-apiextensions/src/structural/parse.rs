//! The reader of `openAPIV3Schema`.

use std::collections::BTreeMap;

use kubewright_cel::rules::Rule;
use serde_json::{Map, Value};

use super::{
    Additional, Allowed, Contains, Docs, Format, Junctors, ListType, MapType, NumberBounds, Pattern,
    SizeBounds, StringBounds, Structural, Type,
};

/// Why a schema does not parse.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// A schema or `properties` is not an object.
    #[error("a schema must be an object")]
    NotAnObject,
    /// An unsupported keyword. The text is upstream's.
    #[error("OpenAPIV3Schema '{0}' is not supported")]
    Unsupported(&'static str),
    /// `items` is a list of schemas.
    #[error("OpenAPIV3Schema 'items' must be a schema, but is an array")]
    ItemsArray,
    /// An unknown type. Only [`CrdValidation`](crate::custom::CrdValidation) rejects it.
    #[error("unknown type {0:?}")]
    UnknownType(String),
}

const UNSUPPORTED: [&str; 7] =
    ["id", "$schema", "$ref", "patternProperties", "dependencies", "additionalItems", "definitions"];

impl Structural {
    /// Parses `openAPIV3Schema`.
    pub fn parse(schema: &Value) -> Result<Self, SchemaError> {
        let Value::Object(source) = schema else { return Err(SchemaError::NotAnObject) };
        for keyword in UNSUPPORTED {
            if source.get(keyword).is_some_and(|value| !is_empty(value)) {
                return Err(SchemaError::Unsupported(if keyword == "$schema" { "schema" } else { keyword }));
            }
        }
        let type_name = text(source, "type");
        let ty = Type::named(type_name);
        let mut parsed = Self {
            ty,
            unknown_type: (ty.is_none() && !type_name.is_empty()).then(|| type_name.into()),
            nullable: flag(source, "nullable"),
            format: None,
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
            default: value(source, "default"),
            preserve_unknown_fields: flag(source, "x-kubernetes-preserve-unknown-fields"),
            int_or_string: flag(source, "x-kubernetes-int-or-string"),
            embedded_resource: flag(source, "x-kubernetes-embedded-resource"),
            list_type: match text(source, "x-kubernetes-list-type") {
                "" => None,
                "set" => Some(ListType::Set),
                "map" => Some(ListType::Map),
                _ => Some(ListType::Atomic),
            },
            list_map_keys: strings(source, "x-kubernetes-list-map-keys"),
            map_type: match text(source, "x-kubernetes-map-type") {
                "atomic" => Some(MapType::Atomic),
                "granular" => Some(MapType::Granular),
                _ => None,
            },
            validations: list(source, "x-kubernetes-validations").iter().map(rule).collect(),
            docs: docs(source),
            contains: Contains::default(),
        };
        let format = text(source, "format");
        parsed.format = (!format.is_empty()).then(|| Format::of(format, parsed.types()));
        parsed.contains = parsed.contained();
        Ok(parsed)
    }
}

fn properties(source: &Map<String, Value>) -> Result<BTreeMap<String, Structural>, SchemaError> {
    match source.get("properties") {
        None | Some(Value::Null) => Ok(BTreeMap::new()),
        Some(Value::Object(properties)) => {
            properties.iter().map(|(name, schema)| Ok((name.clone(), Structural::parse(schema)?))).collect()
        }
        Some(_) => Err(SchemaError::NotAnObject),
    }
}

fn additional(source: &Map<String, Value>) -> Result<Option<Additional>, SchemaError> {
    match source.get("additionalProperties") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(allowed)) => Ok(Some(Additional::Allowed(*allowed))),
        Some(schema) => Ok(Some(Additional::Schema(Box::new(Structural::parse(schema)?)))),
    }
}

fn items(source: &Map<String, Value>) -> Result<Option<Box<Structural>>, SchemaError> {
    match source.get("items") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(_)) => Err(SchemaError::ItemsArray),
        Some(schema) => Ok(Some(Box::new(Structural::parse(schema)?))),
    }
}

fn rule(source: &Value) -> Rule {
    let text = |name: &str| source.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    Rule {
        expression: text("rule"),
        message: text("message"),
        message_expression: text("messageExpression"),
        reason: source.get("reason").and_then(Value::as_str).map(str::to_owned),
        field_path: text("fieldPath"),
        optional_old_self: source.get("optionalOldSelf").and_then(Value::as_bool),
    }
}

fn docs(source: &Map<String, Value>) -> Option<Box<Docs>> {
    let docs = Docs {
        title: text(source, "title").to_owned(),
        description: text(source, "description").to_owned(),
        external_docs: value(source, "externalDocs").filter(|docs| !is_empty(docs)),
        example: value(source, "example"),
    };
    (docs != Docs::default()).then(|| Box::new(docs))
}

fn number(source: &Map<String, Value>) -> Option<Box<NumberBounds>> {
    let bound = |name: &str| source.get(name).and_then(Value::as_number).cloned();
    let bounds = NumberBounds {
        minimum: bound("minimum"),
        exclusive_minimum: flag(source, "exclusiveMinimum"),
        maximum: bound("maximum"),
        exclusive_maximum: flag(source, "exclusiveMaximum"),
        multiple_of: bound("multipleOf"),
    };
    (bounds != NumberBounds::default()).then(|| Box::new(bounds))
}

fn string(source: &Map<String, Value>) -> Option<Box<StringBounds>> {
    let bounds = StringBounds {
        min_length: source.get("minLength").and_then(Value::as_i64),
        max_length: source.get("maxLength").and_then(Value::as_i64),
        pattern: Some(text(source, "pattern")).filter(|text| !text.is_empty()).map(Pattern::new),
    };
    (bounds != StringBounds::default()).then(|| Box::new(bounds))
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
    (bounds != SizeBounds::default()).then(|| Box::new(bounds))
}

fn junctors(source: &Map<String, Value>) -> Result<Option<Box<Junctors>>, SchemaError> {
    let all = |name: &str| list(source, name).iter().map(Structural::parse).collect::<Result<Vec<_>, _>>();
    let junctors = Junctors {
        all_of: all("allOf")?,
        any_of: all("anyOf")?,
        one_of: all("oneOf")?,
        not: source.get("not").filter(|not| !not.is_null()).map(Structural::parse).transpose()?,
    };
    Ok((junctors != Junctors::default()).then(|| Box::new(junctors)))
}

fn text<'a>(source: &'a Map<String, Value>, name: &str) -> &'a str {
    source.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// A value other than null.
fn value(source: &Map<String, Value>, name: &str) -> Option<Value> {
    source.get(name).filter(|value| !value.is_null()).cloned()
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
        let schema = Structural::parse(&json!({})).unwrap();
        assert!(schema.types().is_any());
        assert!(schema.number.is_none() && schema.string.is_none() && schema.size.is_none());
        assert!(schema.junctors.is_none());
    }

    #[test]
    fn int_or_string_allows_both_types() {
        let schema = Structural::parse(&json!({"x-kubernetes-int-or-string": true})).unwrap();
        assert_eq!(schema.types().to_string(), "integer,string");
        assert_eq!(schema.types().single(), None);
    }

    #[test]
    fn features_of_subschemas_are_known_at_the_root() {
        let schema = Structural::parse(&json!({"type": "object", "properties": {
            "a": {"type": "array", "items": {"type": "object", "additionalProperties": {"type": "string", "default": "x"}}},
            "c": {"anyOf": [{"pattern": "([^a]{1,30}){1,33}"}]},
            "b": {"type": "string", "x-kubernetes-validations": [{"rule": "true"}]},
        }}))
        .unwrap();
        assert_eq!(
            schema.contains,
            Contains { defaults: true, rules: true, patterns: true, ..Contains::default() }
        );
        assert!(schema.has_costly_patterns());
    }

    #[test]
    fn unsupported_keywords_are_rejected() {
        assert_eq!(
            Structural::parse(&json!({"properties": {"a": {"$ref": "#/x"}}})).unwrap_err(),
            SchemaError::Unsupported("$ref")
        );
        assert_eq!(Structural::parse(&json!({"items": [{}]})).unwrap_err(), SchemaError::ItemsArray);
        assert_eq!(Structural::parse(&json!(true)).unwrap_err(), SchemaError::NotAnObject);
    }
}
