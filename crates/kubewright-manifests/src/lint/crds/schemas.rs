//! Schema problems that the API server accepts.

use kubewright_apiextensions::crd;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::types;
use serde_json::Value;

use super::place::child;
use crate::declare::Item;
use crate::lint::Finding;

/// Checks all nested schemas of a version.
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

/// Visits every schema of a value, with its field path.
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
                format!("the API server does not support `{keyword}` and drops it, so it validates nothing");
            let help = match keyword.as_str() {
                "const" => "use an `enum` with only that value",
                "prefixItems"
                | "unevaluatedProperties"
                | "propertyNames"
                | "if"
                | "then"
                | "else"
                | "contains" => "use a CEL validation rule",
                _ => "use keywords of OpenAPI v3.0 and Kubernetes, or a CEL validation rule",
            };
            Finding::error("KW214", item, message, help).at(field)
        })
        .collect()
}

/// Checks that enum values have the right type, and that a nullable enum contains null.
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
        ("`enum` has no values, so nothing is valid".to_owned(), "add values, or remove it")
    } else if let Some(other) = values.iter().find(|value| !is_of_type(value)) {
        (format!("the `enum` value {other} is not of type {kind}"), "use values of the field's type")
    } else if nullable && !values.contains(&Value::Null) {
        (
            "the field is nullable, but `enum` does not contain null, so null is rejected".to_owned(),
            "remove `nullable` and skip the field if it is `None` (`skip_serializing_if = \"Option::is_none\"`)",
        )
    } else {
        return None;
    };
    Some(Finding::warning("KW206", item, message, help))
}

/// Formats that the API server warns about.
fn unrecognized_formats(definition: &Value) -> Vec<String> {
    let warnings = crd::warnings(definition, None);
    warnings.iter().filter_map(|warning| warning.split('"').nth(1)).map(str::to_owned).collect()
}

fn unrecognized_format(format: &str, item: &Item) -> Finding {
    let message =
        format!("the API server does not support the format `{format}`: it warns and validates nothing");
    let help = match format {
        "uint" | "uint8" | "uint16" | "uint32" | "uint64" | "int8" | "int16" => {
            "use `int32` or `int64`, with a minimum and a maximum"
        }
        _ => "remove the format, or use a pattern or a CEL validation rule",
    };
    Finding::warning("KW213", item, message, help)
}
