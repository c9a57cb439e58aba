//! Formats parts of a CRD like upstream's messages: Go's internal types as JSON.
//!
//! Those types have no JSON tags, so every field appears with its Go name and in Go's order.

use serde_json::Value;

use super::spec::Spec;
use kubewright_apimachinery::json;
use kubewright_apimachinery::object::Fields as _;

/// How Go serializes an unset field.
#[derive(Clone, Copy)]
pub(super) enum Shape {
    Text,
    Flag,
    /// A pointer, or a list of scalars: `null` when unset.
    Plain,
    Items,
    Schema,
    Schemas,
    SchemaMap,
    OrBool,
    OrStrings,
    Docs,
    Rules,
}

/// The fields of a schema: JSON name and Go name, in Go's order.
pub(super) const SCHEMA_FIELDS: [(&str, &str, Shape); 44] = [
    ("id", "ID", Shape::Text),
    ("$schema", "Schema", Shape::Text),
    ("$ref", "Ref", Shape::Plain),
    ("description", "Description", Shape::Text),
    ("type", "Type", Shape::Text),
    ("nullable", "Nullable", Shape::Flag),
    ("format", "Format", Shape::Text),
    ("title", "Title", Shape::Text),
    ("default", "Default", Shape::Plain),
    ("maximum", "Maximum", Shape::Plain),
    ("exclusiveMaximum", "ExclusiveMaximum", Shape::Flag),
    ("minimum", "Minimum", Shape::Plain),
    ("exclusiveMinimum", "ExclusiveMinimum", Shape::Flag),
    ("maxLength", "MaxLength", Shape::Plain),
    ("minLength", "MinLength", Shape::Plain),
    ("pattern", "Pattern", Shape::Text),
    ("maxItems", "MaxItems", Shape::Plain),
    ("minItems", "MinItems", Shape::Plain),
    ("uniqueItems", "UniqueItems", Shape::Flag),
    ("multipleOf", "MultipleOf", Shape::Plain),
    ("enum", "Enum", Shape::Plain),
    ("maxProperties", "MaxProperties", Shape::Plain),
    ("minProperties", "MinProperties", Shape::Plain),
    ("required", "Required", Shape::Plain),
    ("items", "Items", Shape::Items),
    ("allOf", "AllOf", Shape::Schemas),
    ("oneOf", "OneOf", Shape::Schemas),
    ("anyOf", "AnyOf", Shape::Schemas),
    ("not", "Not", Shape::Schema),
    ("properties", "Properties", Shape::SchemaMap),
    ("additionalProperties", "AdditionalProperties", Shape::OrBool),
    ("patternProperties", "PatternProperties", Shape::SchemaMap),
    ("dependencies", "Dependencies", Shape::OrStrings),
    ("additionalItems", "AdditionalItems", Shape::OrBool),
    ("definitions", "Definitions", Shape::SchemaMap),
    ("externalDocs", "ExternalDocs", Shape::Docs),
    ("example", "Example", Shape::Plain),
    ("x-kubernetes-preserve-unknown-fields", "XPreserveUnknownFields", Shape::Plain),
    ("x-kubernetes-embedded-resource", "XEmbeddedResource", Shape::Flag),
    ("x-kubernetes-int-or-string", "XIntOrString", Shape::Flag),
    ("x-kubernetes-list-map-keys", "XListMapKeys", Shape::Plain),
    ("x-kubernetes-list-type", "XListType", Shape::Plain),
    ("x-kubernetes-map-type", "XMapType", Shape::Plain),
    ("x-kubernetes-validations", "XValidations", Shape::Rules),
];

/// `spec.versions`.
pub(super) fn versions(spec: &Spec<'_>) -> String {
    if !spec.raw.at("versions").is_array() {
        return "null".to_owned();
    }
    list(&spec.versions, |version| {
        let raw = version.raw;
        object(&[
            ("Name", text(raw, "name")),
            ("Served", flag(raw, "served")),
            ("Storage", flag(raw, "storage")),
            ("Deprecated", flag(raw, "deprecated")),
            ("DeprecationWarning", plain(raw, "deprecationWarning")),
            ("Schema", version.schema.map_or_else(null, validation)),
            ("Subresources", version.subresources.map_or_else(null, subresources)),
            ("AdditionalPrinterColumns", list_or_null(version.columns, column)),
            (
                "SelectableFields",
                list_or_null(version.selectable, |field| object(&[("JSONPath", text(field, "jsonPath"))])),
            ),
        ])
    })
}

/// A schema.
pub(super) fn schema(schema: &Value) -> String {
    let members: Vec<(&str, String)> = SCHEMA_FIELDS
        .iter()
        .map(|(name, go, shape)| {
            let value = schema.get(*name).filter(|value| !value.is_null());
            (*go, value.map_or_else(|| unset(*shape).to_owned(), |value| field(*shape, value)))
        })
        .collect();
    object(&members)
}

/// A rule of `x-kubernetes-validations`.
pub(super) fn rule(rule: &Value) -> String {
    object(&[
        ("Rule", text(rule, "rule")),
        ("Message", text(rule, "message")),
        ("MessageExpression", text(rule, "messageExpression")),
        ("Reason", plain(rule, "reason")),
        ("FieldPath", text(rule, "fieldPath")),
        ("OptionalOldSelf", plain(rule, "optionalOldSelf")),
    ])
}

/// The value of `items`.
pub(super) fn items(value: &Value) -> String {
    match value {
        Value::Array(each) => object(&[("Schema", null()), ("JSONSchemas", list_or_null(each, schema))]),
        one => object(&[("Schema", schema(one)), ("JSONSchemas", null())]),
    }
}

fn unset(shape: Shape) -> &'static str {
    match shape {
        Shape::Text => "\"\"",
        Shape::Flag => "false",
        _ => "null",
    }
}

fn field(shape: Shape, value: &Value) -> String {
    match shape {
        Shape::Text | Shape::Flag | Shape::Plain => json::to_string(value),
        Shape::Items => items(value),
        Shape::Schema => schema(value),
        Shape::Schemas => list(value.as_array().into_iter().flatten(), schema),
        Shape::SchemaMap => map(value, schema),
        Shape::OrBool => match value {
            Value::Bool(allows) => object(&[("Allows", allows.to_string()), ("Schema", null())]),
            other => object(&[("Allows", "true".to_owned()), ("Schema", schema(other))]),
        },
        Shape::OrStrings => map(value, |dependency| match dependency {
            Value::Array(_) => object(&[("Schema", null()), ("Property", json::to_string(dependency))]),
            other => object(&[("Schema", schema(other)), ("Property", null())]),
        }),
        Shape::Docs => object(&[("Description", text(value, "description")), ("URL", text(value, "url"))]),
        Shape::Rules => list(value.as_array().into_iter().flatten(), rule),
    }
}

fn validation(value: &Value) -> String {
    object(&[("OpenAPIV3Schema", super::spec::root(value).map_or_else(null, |root| schema(root.0)))])
}

fn subresources(value: &Value) -> String {
    let status = if value.has("status") { "{}".to_owned() } else { null() };
    let scale = match value.at("scale") {
        Value::Null => null(),
        scale => object(&[
            ("SpecReplicasPath", text(scale, "specReplicasPath")),
            ("StatusReplicasPath", text(scale, "statusReplicasPath")),
            ("LabelSelectorPath", plain(scale, "labelSelectorPath")),
        ]),
    };
    object(&[("Status", status), ("Scale", scale)])
}

fn column(column: &Value) -> String {
    object(&[
        ("Name", text(column, "name")),
        ("Type", text(column, "type")),
        ("Format", text(column, "format")),
        ("Description", text(column, "description")),
        ("Priority", column.int_at("priority").unwrap_or_default().to_string()),
        ("JSONPath", text(column, "jsonPath")),
    ])
}

fn null() -> String {
    "null".to_owned()
}

fn text(value: &Value, name: &str) -> String {
    json::to_string(&value.str_at(name).into())
}

fn flag(value: &Value, name: &str) -> String {
    value.bool_at(name).to_string()
}

fn plain(value: &Value, name: &str) -> String {
    json::to_string(value.at(name))
}

fn object(members: &[(&str, String)]) -> String {
    let members: Vec<String> = members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    format!("{{{}}}", members.join(","))
}

fn map(value: &Value, print: impl Fn(&Value) -> String) -> String {
    let members: Vec<String> = value
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| format!("{}:{}", json::to_string(&name.as_str().into()), print(value)))
        .collect();
    format!("{{{}}}", members.join(","))
}

fn list<T>(items: impl IntoIterator<Item = T>, print: impl Fn(T) -> String) -> String {
    format!("[{}]", items.into_iter().map(print).collect::<Vec<_>>().join(","))
}

fn list_or_null(items: &[Value], print: impl Fn(&Value) -> String) -> String {
    if items.is_empty() { null() } else { list(items, print) }
}
