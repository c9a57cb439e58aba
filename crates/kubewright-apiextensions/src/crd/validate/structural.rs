//! Structural schemas: every value has one schema that defines its structure; logical junctors only add
//! constraints.
//!
//! Upstream converts a schema to two types, one for structure and one for constraints below `allOf`, `anyOf`,
//! `oneOf` and `not`. Here both are the same [`Schema`], checked by different functions.

use serde_json::{Value, json};

use super::super::printed::SCHEMA_FIELDS;
use super::super::schema::{Additional, Items, Schema};
use crate::structural::compile_pattern;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// Checks that a schema is structural. The errors are sorted by text.
pub(super) fn validate(schema: Schema<'_>, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    invariants(schema, Level::Root, path, &mut errors);
    completeness(schema, Some(schema), path, path, &mut errors);
    errors.sort_by_cached_key(ToString::to_string);
    errors
}

/// The first keyword that structural schemas do not support, which also prevents upstream's conversion.
pub(super) fn unsupported(schema: Schema<'_>) -> Option<String> {
    let not_supported = |name: &str| Some(format!("OpenAPIV3Schema '{name}' is not supported"));
    for (field, name) in [("id", "id"), ("$schema", "schema"), ("$ref", "$ref")] {
        if !schema.text(field).is_empty() {
            return not_supported(name);
        }
    }
    for name in ["patternProperties", "dependencies"] {
        if !schema.map(name).is_empty() {
            return not_supported(name);
        }
    }
    if schema.additional("additionalItems").is_some() {
        return not_supported("additionalItems");
    }
    if !schema.map("definitions").is_empty() {
        return not_supported("definitions");
    }
    if schema.get("x-kubernetes-preserve-unknown-fields").is_some() && !schema.preserves_unknown_fields() {
        return Some(
            "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined".to_owned(),
        );
    }
    if let Some(Items::Each(_)) = schema.items() {
        return Some("OpenAPIV3Schema 'items' must be a schema, but is an array".to_owned());
    }
    let additional = match schema.additional_properties() {
        Some(Additional::Schema(schema)) => Some(schema),
        _ => None,
    };
    let nested = schema
        .not()
        .into_iter()
        .chain(["allOf", "anyOf", "oneOf"].into_iter().flat_map(|of| schema.list(of)));
    let structure =
        schema.item().into_iter().chain(schema.properties().map(|(_, schema)| schema)).chain(additional);
    nested.chain(structure).find_map(unsupported)
}

fn invariants(schema: Schema<'_>, level: Level, path: &Path, errors: &mut ErrorList) {
    let item = schema.item();
    if schema.kind() == "array" && item.is_none() {
        errors.push(FieldError::required(&path.child("items"), "must be specified"));
    }
    if let Some(item) = item {
        invariants(item, Level::Item, &path.child("items"), errors);
    }
    for (name, property) in schema.properties() {
        invariants(property, Level::Field, &path.child("properties").key(name), errors);
    }
    if let Some(additional) = schema.additional_properties() {
        let path = path.child("additionalProperties");
        if level == Level::Root {
            errors.push(FieldError::forbidden(&path, "must not be used at the root"));
        }
        if let Additional::Schema(additional) = additional {
            invariants(additional, Level::Field, &path, errors);
        }
    }
    int_or_string(schema, path, errors);
    constraints(schema, is_int_or_string(schema), first_is_int_or_string(schema), path, errors);
    types(schema, level, path, errors);
    metadata(schema, level, path, errors);
    if schema.is_embedded() && !schema.preserves_unknown_fields() && schema.map("properties").is_empty() {
        errors.push(FieldError::required(
            &path.child("properties"),
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
        ));
    }
}

fn int_or_string(schema: Schema<'_>, path: &Path, errors: &mut ErrorList) {
    if schema.flag("x-kubernetes-int-or-string") {
        for name in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
            if schema.flag(name) {
                let detail = "must be false if x-kubernetes-int-or-string is true";
                errors.push(FieldError::invalid(&path.child(name), true, detail));
            }
        }
    }
}

fn types(schema: Schema<'_>, level: Level, path: &Path, errors: &mut ErrorList) {
    let kind = schema.kind();
    let type_path = path.child("type");
    if schema.is_embedded() && kind != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(if kind.is_empty() {
            FieldError::required(&type_path, detail)
        } else {
            FieldError::invalid(&type_path, kind, detail)
        });
    } else if kind.is_empty()
        && !schema.flag("x-kubernetes-int-or-string")
        && !schema.preserves_unknown_fields()
    {
        errors.push(FieldError::required(
            &type_path,
            match level {
                Level::Root => "must not be empty at the root",
                Level::Item => "must not be empty for specified array items",
                Level::Field => "must not be empty for specified object fields",
            },
        ));
    }
    if schema.is_embedded() && schema.additional_properties().is_some() {
        let detail = "must not be used if x-kubernetes-embedded-resource is set";
        errors.push(FieldError::forbidden(&path.child("additionalProperties"), detail));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        errors.push(FieldError::invalid(&type_path, kind, "must be object at the root"));
    }
}

/// Checks that `apiVersion`, `kind` and `metadata` have only the allowed constraints.
fn metadata(schema: Schema<'_>, level: Level, path: &Path, errors: &mut ErrorList) {
    let is_resource = level == Level::Root || schema.is_embedded();
    let path = path.child("properties");
    for name in ["kind", "apiVersion"] {
        if let Some(property) = schema.property(name)
            && is_resource
            && property.kind() != "string"
        {
            let path = path.key(name).child("type");
            errors.push(FieldError::invalid(&path, property.kind(), "must be string"));
        }
    }
    let Some(metadata) = schema.property("metadata") else { return };
    let path = path.key("metadata");
    if is_resource && metadata.kind() != "object" {
        errors.push(FieldError::invalid(&path.child("type"), metadata.kind(), "must be object"));
    }
    if level == Level::Root && !restricts_names_only(metadata) {
        errors.push(FieldError::forbidden(
            &path,
            "must not specify anything other than name and generateName, but metadata is implicitly specified",
        ));
    }
}

fn restricts_names_only(metadata: Schema<'_>) -> bool {
    metadata.properties().all(|(name, _)| matches!(name, "name" | "generateName"))
        && SCHEMA_FIELDS.iter().all(|(name, ..)| {
            // The default is rejected elsewhere.
            let is_free = matches!(*name, "type" | "default" | "properties");
            let is_zero = |value: &Value| match value {
                Value::Bool(false) => *name != "additionalProperties",
                Value::String(text) => text.is_empty(),
                _ => false,
            };
            is_free || metadata.get(name).is_none_or(is_zero)
        })
}

/// `anyOf: [{type: integer}, {type: string}]`, the only place where a type is allowed below a junctor.
fn is_int_or_string(schema: Schema<'_>) -> bool {
    let any_of: Vec<Schema<'_>> = schema.list("anyOf").collect();
    any_of.len() == 2
        && any_of[0].0 == &json!({"type": "integer"})
        && any_of[1].0 == &json!({"type": "string"})
}

fn first_is_int_or_string(schema: Schema<'_>) -> bool {
    schema.list("allOf").next().is_some_and(is_int_or_string)
}

/// Checks the junctors and the pattern of a schema.
fn constraints(
    schema: Schema<'_>,
    skip_any_of: bool,
    skip_first_all_of: bool,
    path: &Path,
    errors: &mut ErrorList,
) {
    for name in ["anyOf", "allOf", "oneOf"] {
        if name == "anyOf" && skip_any_of {
            continue;
        }
        for (i, clause) in schema.list(name).enumerate() {
            let skip = name == "allOf" && i == 0 && skip_first_all_of;
            nested(clause, skip, &path.child(name).index(i), errors);
        }
    }
    if let Some(clause) = schema.not() {
        nested(clause, false, &path.child("not"), errors);
    }
    let pattern = schema.text("pattern");
    if !pattern.is_empty()
        && let Err(error) = compile_pattern(pattern)
    {
        let detail = format!("must be a valid regular expression, but isn't: {error}");
        errors.push(FieldError::invalid(&path.child("pattern"), pattern, detail));
    }
}

/// Checks a schema below a junctor, which must not define structure.
fn nested(schema: Schema<'_>, skip_any_of: bool, path: &Path, errors: &mut ErrorList) {
    constraints(schema, skip_any_of, false, path, errors);
    if let Some(item) = schema.item() {
        nested(item, false, &path.child("items"), errors);
    }
    for (name, property) in schema.properties() {
        nested(property, false, &path.child("properties").key(name), errors);
    }
    let mut forbid = |name: &str, found: bool, must_be: &str| {
        if found {
            errors.push(FieldError::forbidden(
                &path.child(name),
                format!("must be {must_be} to be structural"),
            ));
        }
    };
    let has_text = |name: &str| !schema.text(name).is_empty();
    forbid("type", has_text("type"), "empty");
    let additional = schema.additional_properties();
    forbid(
        "additionalProperties",
        additional.is_some_and(|additional| !matches!(additional, Additional::Allowed(false))),
        "undefined",
    );
    forbid("default", schema.default().is_some(), "undefined");
    forbid("title", has_text("title"), "empty");
    forbid("description", has_text("description"), "empty");
    for name in [
        "nullable",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
    ] {
        forbid(name, schema.flag(name), "false");
    }
    forbid("x-kubernetes-list-map-keys", !schema.map_keys().is_empty(), "empty");
    forbid("x-kubernetes-list-type", schema.list_type().is_some(), "undefined");
    forbid("x-kubernetes-map-type", schema.map_type().is_some(), "undefined");
    forbid("x-kubernetes-validations", !schema.rules().is_empty(), "empty");
    if schema.property("metadata").is_some() {
        let path = path.child("properties").key("metadata");
        errors.push(FieldError::forbidden(&path, "must not be specified in a nested context"));
    }
}

/// Checks that every field constrained below a junctor is also declared outside of it.
fn completeness(
    clause: Schema<'_>,
    structure: Option<Schema<'_>>,
    at: &Path,
    clause_path: &Path,
    errors: &mut ErrorList,
) {
    let mut nested =
        |clause, clause_path: &Path| nested_completeness(clause, structure, at, clause_path, errors);
    if let Some(not) = clause.not() {
        nested(not, &clause_path.child("not"));
    }
    for name in ["allOf", "anyOf", "oneOf"] {
        for (i, of) in clause.list(name).enumerate() {
            nested(of, &clause_path.child(name).index(i));
        }
    }
}

fn nested_completeness(
    clause: Schema<'_>,
    structure: Option<Schema<'_>>,
    at: &Path,
    clause_path: &Path,
    errors: &mut ErrorList,
) {
    let Some(structure) = structure else {
        errors.push(FieldError::required(at, format!("because it is defined in {clause_path}")));
        return;
    };
    completeness(clause, Some(structure), at, clause_path, errors);
    if let Some(item) = clause.item() {
        nested_completeness(item, structure.item(), &at.child("items"), &clause_path.child("items"), errors);
    }
    for (name, property) in clause.properties() {
        let at = at.child("properties").key(name);
        let clause_path = clause_path.child("properties").key(name);
        nested_completeness(property, structure.property(name), &at, &clause_path, errors);
    }
}
