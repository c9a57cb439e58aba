//! Generates the lines of `types.txt` from schemas.
//!
//! `kubewright_apimachinery::types` documents the format. A line combines the PyPI schema with defaults and
//! enums of a running server, and with order, pointers and `omitempty` of Go's structs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::golang::{GoField, Structs};

const HEADER: &str = "\
# Types of Kubernetes v1.36, derived by `cargo xtask facts`; the format is described in src/types.rs.
# Generated and reviewed: change the generator, not this file.
";

/// Leaf types and their letters in the table.
const LEAVES: [(&str, &str); 7] = [
    ("io.k8s.apimachinery.pkg.api.resource.Quantity", "q"),
    ("io.k8s.apimachinery.pkg.util.intstr.IntOrString", "x"),
    ("io.k8s.apimachinery.pkg.apis.meta.v1.Time", "t"),
    ("io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime", "u"),
    ("io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1", "f"),
    ("io.k8s.apimachinery.pkg.runtime.RawExtension", "r"),
    ("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON", "j"),
];

/// OpenAPI package prefixes and their short forms in the table.
const PREFIXES: [(&str, &str); 5] = [
    ("io.k8s.api.", ""),
    ("io.k8s.apimachinery.pkg.apis.", ""),
    ("io.k8s.apimachinery.pkg.", ""),
    ("io.k8s.apiextensions-apiserver.pkg.apis.", ""),
    ("io.k8s.kube-aggregator.pkg.apis.", ""),
];

pub(crate) fn derive(definitions: &Value, served: &Value, go: &Structs) -> Result<String> {
    let served = served_schemas(served);
    let mut lines = BTreeMap::new();
    for (openapi, schema) in definitions.as_object().context("$defs is not an object")? {
        if LEAVES.iter().any(|(leaf, _)| leaf == openapi) {
            continue;
        }
        let name = short(openapi)?;
        let line = line(&name, schema, served.get(openapi.as_str()).copied(), &go.fields(&name))
            .with_context(|| format!("type {name}"))?;
        lines.insert(name, line);
    }
    let mut text = String::from(HEADER);
    for line in lines.values() {
        text.push_str(line);
        text.push('\n');
    }
    Ok(text)
}

/// The fields of every type according to the PyPI package, `type -> field -> facts`, in the notation of the
/// table. The package has no pointers, defaults or enums.
pub fn facts_of_definitions(definitions: &Value) -> Result<BTreeMap<String, BTreeMap<String, String>>> {
    let mut types = BTreeMap::new();
    for (openapi, schema) in definitions.as_object().context("$defs is not an object")? {
        if LEAVES.iter().any(|(leaf, _)| leaf == openapi) {
            continue;
        }
        let name = short(openapi)?;
        let package = package(&name);
        let mut fields = BTreeMap::new();
        for (field, schema_of) in schema["properties"].as_object().into_iter().flatten() {
            fields.insert(field.clone(), core_facts(schema_of, package, is_required(schema, field))?);
        }
        types.insert(name, fields);
    }
    Ok(types)
}

/// The schemas of all OpenAPI documents of a running server, by OpenAPI name.
pub(super) fn served_schemas(served: &Value) -> BTreeMap<&str, &Value> {
    let documents = served.as_object().into_iter().flatten();
    documents
        .flat_map(|(_, document)| document["schemas"].as_object().into_iter().flatten())
        .map(|(name, schema)| (name.as_str(), schema))
        .collect()
}

fn line(name: &str, schema: &Value, served: Option<&Value>, go: &[GoField]) -> Result<String> {
    let mut line = name.to_owned();
    if schema["x-kubernetes-map-type"] == "atomic" {
        line.push_str(" @atomic");
    }
    for gvk in schema["x-kubernetes-group-version-kind"].as_array().into_iter().flatten() {
        // Options kinds list every group. Only a kind's own group is a fact about the type.
        if gvk["kind"] == name.rsplit('.').next().unwrap_or_default() && group_matches(name, gvk) {
            write!(line, " @kind={}/{}", text(&gvk["group"]), text(&gvk["version"]))?;
        }
    }
    if let Some(unions) = schema.get("x-kubernetes-unions") {
        write!(line, " @unions={unions}")?;
    }
    let Some(properties) = schema["properties"].as_object() else {
        // An object without properties is an empty struct. A schema without a type accepts any JSON.
        if schema["type"].is_null() {
            line.push_str(" @any");
        }
        return Ok(line);
    };
    let mut order: Vec<&str> =
        go.iter().map(|f| f.json.as_str()).filter(|f| properties.contains_key(*f)).collect();
    order.extend(properties.keys().map(String::as_str).filter(|f| go.iter().all(|g| g.json != *f)));
    for field in order {
        let schema_of = &properties[field];
        let served_field = served.map(|s| &s["properties"][field]);
        write!(line, " {field}:{}", core_facts(schema_of, package(name), is_required(schema, field))?)?;
        if let Some(go) = go.iter().find(|g| g.json == field) {
            if go.pointer {
                line.push('?');
            }
            if go.always(is_structure(schema_of)) {
                line.push('+');
            }
        }
        let enums = served_field.map_or(schema_of, |s| if s.is_null() { schema_of } else { s });
        if field != "kind" && field != "apiVersion" {
            write!(line, "{}", enum_text(&enums["enum"]))?;
        }
        if let Some(default) = served_field.and_then(|s| s.get("default")).filter(|d| !is_zero(d)) {
            write!(line, "={default}")?;
        }
    }
    Ok(line)
}

/// Type, required, list type and patch strategy of a field. All schemas must agree on them.
fn core_facts(schema: &Value, package: &str, required: bool) -> Result<String> {
    let mut facts = type_text(schema, package)?;
    if required {
        facts.push('!');
    }
    match schema["x-kubernetes-list-type"].as_str().or_else(|| schema["x-kubernetes-map-type"].as_str()) {
        None => {}
        Some("atomic") => facts.push_str("@a"),
        Some("granular") => facts.push_str("@g"),
        Some("set") => facts.push_str("@s"),
        Some("map") => {
            let keys: Vec<&str> =
                schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten().map(text).collect();
            write!(facts, "@m({})", keys.join(","))?;
        }
        Some(other) => bail!("unknown list type {other}"),
    }
    match schema["x-kubernetes-patch-strategy"].as_str() {
        None => {}
        Some("merge") => facts.push_str("~m"),
        Some("merge,retainKeys") => facts.push_str("~mr"),
        Some("retainKeys") => facts.push_str("~r"),
        Some("replace") => facts.push_str("~p"),
        Some(other) => bail!("unknown patch strategy {other}"),
    }
    if let Some(key) = schema["x-kubernetes-patch-merge-key"].as_str() {
        write!(facts, "({key})")?;
    }
    Ok(facts)
}

fn type_text(schema: &Value, package: &str) -> Result<String> {
    if let Some(target) = reference(schema) {
        if let Some((_, letter)) = LEAVES.iter().find(|(leaf, _)| *leaf == target) {
            return Ok((*letter).to_owned());
        }
        let name = short(target)?;
        return Ok(name.strip_prefix(package).map_or(name.clone(), str::to_owned));
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().map(text).find(|k| *k != "null").unwrap_or_default(),
        other => text(other),
    };
    Ok(match (kind, schema["format"].as_str()) {
        ("string", None) => "s".to_owned(),
        ("string", Some("byte")) => "y".to_owned(),
        ("boolean", None) => "b".to_owned(),
        ("integer", Some("int32")) => "i".to_owned(),
        ("integer", Some("int64")) => "l".to_owned(),
        ("number", Some("double")) => "n".to_owned(),
        ("array", None) => {
            format!("[{}{}]", type_text(&schema["items"], package)?, enum_text(&schema["items"]["enum"]))
        }
        ("object", None) if schema["additionalProperties"].is_object() => {
            format!("{{{}}}", type_text(&schema["additionalProperties"], package)?)
        }
        (kind, format) => bail!("no letter for type {kind:?} with format {format:?}"),
    })
}

/// Whether the field is a Go struct.
pub(super) fn is_structure(schema: &Value) -> bool {
    reference(schema).is_some()
}

fn reference(schema: &Value) -> Option<&str> {
    let target = schema["$ref"].as_str().or_else(|| schema["allOf"][0]["$ref"].as_str())?;
    target.rsplit('/').next()
}

fn enum_text(values: &Value) -> String {
    let values: Vec<&str> = values.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if values.is_empty() { String::new() } else { format!("%({})", values.join("|")) }
}

pub(super) fn is_zero(value: &Value) -> bool {
    matches!(value, Value::Null | Value::Bool(false))
        || value.as_str().is_some_and(str::is_empty)
        || value.as_i64() == Some(0)
        || value.as_object().is_some_and(serde_json::Map::is_empty)
}

fn is_required(schema: &Value, field: &str) -> bool {
    schema["required"].as_array().into_iter().flatten().any(|r| r == field)
}

pub(super) fn short(openapi: &str) -> Result<String> {
    let found = PREFIXES
        .iter()
        .find_map(|(long, short)| openapi.strip_prefix(long).map(|rest| format!("{short}{rest}")));
    found.with_context(|| format!("no short prefix for {openapi}"))
}

fn package(name: &str) -> &str {
    &name[..name.rfind('.').map_or(0, |dot| dot + 1)]
}

fn group_matches(name: &str, gvk: &Value) -> bool {
    let group = text(&gvk["group"]);
    let package = name.split('.').next().unwrap_or_default();
    match package {
        "core" | "meta" => group.is_empty(),
        "apiserverinternal" => group == "internal.apiserver.k8s.io",
        _ => group.split('.').next() == Some(package),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
