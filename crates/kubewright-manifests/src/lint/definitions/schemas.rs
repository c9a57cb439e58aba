//! What a server accepts in a schema although it cannot be meant.

use kubewright_apiextensions::crd;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::types;
use serde_json::Value;

use super::place::child;
use crate::declare::Item;
use crate::lint::Finding;

/// Looks at every schema inside that of a version.
pub(super) fn check(definition: &Value, version: &Value, item: &Item) -> Vec<Finding> {
    let mut findings = Vec::new();
    let formats = unrecognized_formats(definition);
    let schema = version.at("schema.openAPIV3Schema");
    walk(schema, "", &mut |field, schema| {
        findings.extend(unknown_keywords(schema, field, item));
        findings.extend(enumeration(schema, item).map(|finding| finding.at(field)));
        let format = schema.str_at("format");
        if formats.iter().any(|unrecognized| unrecognized == format) {
            findings.push(unrecognized_format(format, item).at(field));
        }
    });
    findings
}

/// Calls with every schema that describes a value, and the field that it describes.
fn walk<'a>(schema: &'a Value, field: &str, visit: &mut dyn FnMut(&str, &'a Value)) {
    if !schema.is_object() {
        return;
    }
    visit(field, schema);
    for (name, property) in schema.map_at("properties") {
        walk(property, &child(field, name), visit);
    }
    walk(schema.at("items"), &format!("{field}[]"), visit);
    walk(schema.at("additionalProperties"), &format!("{field}[*]"), visit);
}

fn unknown_keywords(schema: &Value, field: &str, item: &Item) -> Vec<Finding> {
    let Some(known) = types::type_named("apiextensions.v1.JSONSchemaProps") else { return Vec::new() };
    let keywords = schema.as_object().into_iter().flatten().map(|(keyword, _)| keyword);
    keywords
        .filter(|keyword| known.field(keyword).is_none())
        .map(|keyword| {
            let message =
                format!("the API server does not know `{keyword}`, and drops it: nothing is validated by it");
            let help = match keyword.as_str() {
                "const" => "write an `enum` with that value alone",
                "prefixItems"
                | "unevaluatedProperties"
                | "propertyNames"
                | "if"
                | "then"
                | "else"
                | "contains" => "write the same as a validation rule in CEL",
                _ => "use what OpenAPI v3.0 and Kubernetes know, or a validation rule in CEL",
            };
            Finding::error("KW214", item, message, help).at(field)
        })
        .collect()
}

/// Values that are not of the type can never be given, and a null that is not among the values is refused.
fn enumeration(schema: &Value, item: &Item) -> Option<Finding> {
    let values = schema.at("enum").as_array()?;
    let kind = schema.str_at("type");
    let nullable = schema.bool_at("nullable");
    let is_of_type = |value: &Value| match (kind, value) {
        (_, Value::Null) => nullable,
        ("string", value) => value.is_string(),
        ("boolean", value) => value.is_boolean(),
        ("number", value) => value.is_number(),
        ("integer", value) => value.is_i64() || value.is_u64(),
        _ => true,
    };
    let (message, help) = if values.is_empty() {
        ("`enum` has no values: nothing is valid".to_owned(), "give it values, or leave it out")
    } else if let Some(other) = values.iter().find(|value| !is_of_type(value)) {
        (format!("{other} is among the values of `enum`, and no {kind}"), "write values of the field's type")
    } else if nullable && !values.contains(&Value::Null) {
        (
            "the field is nullable, and null is not among the values of `enum`: it is refused all the same"
                .to_owned(),
            "leave out `nullable` and skip the field when it is none (`skip_serializing_if = \"Option::is_none\"`)",
        )
    } else {
        return None;
    };
    Some(Finding::warning("KW206", item, message, help))
}

/// The formats that a server warns of.
fn unrecognized_formats(definition: &Value) -> Vec<String> {
    let warnings = crd::warnings(definition, None);
    warnings.iter().filter_map(|warning| warning.split('"').nth(1)).map(str::to_owned).collect()
}

fn unrecognized_format(format: &str, item: &Item) -> Finding {
    let message =
        format!("the API server does not know the format `{format}`, and warns of it: nothing is validated");
    let help = match format {
        "uint" | "uint8" | "uint16" | "uint32" | "uint64" | "int8" | "int16" => {
            "use `int32` or `int64`, with a minimum and a maximum"
        }
        _ => "leave out the format, or write a pattern or a validation rule in CEL",
    };
    Finding::warning("KW213", item, message, help)
}
