//! Defaulting and the registry strategy of CRDs.
//!
//! Runs after decoding and before validation. The caller provides times and generated names.

use serde_json::{Value, json};

use super::conditions::{self, Condition};
use super::schema::Schema;
use super::spec::{Spec, same};
use crate::structural::{self, Format, Types};
use kubewright_apimachinery::decode;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::types::{Type, type_named};

/// The finalizer that keeps a CRD until its custom resources are deleted.
pub const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Normalises the schemas that the decoder of built-in types skips: those below `items`,
/// `additionalProperties` and so on. Must run after decoding. The error is Go's.
pub fn complete(object: &mut Value) -> Result<(), String> {
    let Some(ty) = type_named("apiextensions.v1.JSONSchemaProps") else { return Ok(()) };
    for version in object.list_mut("spec.versions").into_iter().flatten() {
        if let Some(schema) = version.at_mut("schema.openAPIV3Schema") {
            complete_schema(ty, schema, "spec.versions.schema.openAPIV3Schema")?;
        }
    }
    // Drop an empty webhook.
    let webhook = object.at("spec.conversion.webhook");
    if !webhook.is_null() && !webhook.has("clientConfig") && !webhook.has("conversionReviewVersions") {
        object.remove_at("spec.conversion.webhook");
    }
    Ok(())
}

/// Sets defaults.
pub fn set_defaults(object: &mut Value) {
    let kind = object.str_at("spec.names.kind").to_owned();
    if object.str_at("spec.names.singular").is_empty() && !kind.is_empty() {
        object.set_at("spec.names.singular", kind.to_lowercase());
    }
    if object.str_at("spec.names.listKind").is_empty() && !kind.is_empty() {
        object.set_at("spec.names.listKind", format!("{kind}List"));
    }
    object.default_at("spec.conversion", json!({"strategy": "None"}));
    if object.has("spec.conversion.webhook.clientConfig.service") {
        object.default_at("spec.conversion.webhook.clientConfig.service.port", 443);
    }
    if object.list_at("status.storedVersions").is_empty() {
        store_versions(object);
    }
}

/// Prepares a CRD for create.
pub fn prepare_create(object: &mut Value) {
    object.set_at(
        "status",
        json!({"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": null}),
    );
    object.set_at("metadata.generation", 1);
    store_versions(object);
}

/// Prepares a CRD for update.
pub fn prepare_update(new: &mut Value, old: &Value) {
    new.set_at("status", old.at("status").clone());
    let generation = old.int_at("metadata.generation").unwrap_or_default();
    let changed = !same(new.at("spec"), old.at("spec"));
    new.set_at("metadata.generation", generation + i64::from(changed));
    store_versions(new);
}

/// Prepares a CRD for an update of its status. Metadata may change as well.
pub fn prepare_status(new: &mut Value, old: &Value) {
    new.set_at("spec", old.at("spec").clone());
    new.set_at("metadata.generation", old.at("metadata.generation").clone());
}

/// Prepares a CRD for deletion: it stays until [`FINALIZER`] is removed. The caller sets the deletion time.
/// Idempotent.
pub fn prepare_delete(object: &mut Value, now: &str) {
    if !object.list_at("metadata.finalizers").iter().any(|finalizer| finalizer == FINALIZER) {
        let mut finalizers = object.list_at("metadata.finalizers").to_vec();
        finalizers.push(FINALIZER.into());
        object.set_at("metadata.finalizers", finalizers);
    }
    if !conditions::is_true(object, "Terminating") {
        let message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
        let condition = Condition::new("Terminating", true, "InstanceDeletionPending", message);
        conditions::set(object, &condition, now);
    }
}

/// Sets the condition `Terminating`; `all` is set when all custom resources are deleted.
pub fn instances_deleted(object: &mut Value, all: bool, now: &str) {
    let (reason, message) = if all {
        ("InstanceDeletionCompleted", "removed all instances")
    } else {
        ("InstanceDeletionInProgress", "CustomResource deletion is in progress")
    };
    conditions::set(object, &Condition::new("Terminating", !all, reason, message), now);
}

/// The warnings on create (`old` is `None`) or update.
pub fn warnings(new: &Value, old: Option<&Value>) -> Vec<String> {
    let known = old.map(unrecognized_formats).unwrap_or_default();
    unrecognized_formats(new)
        .into_iter()
        .filter(|format| !known.contains(format))
        .map(|format| format!("unrecognized format {}", kubewright_apimachinery::field::quote(format)))
        .collect()
}

fn store_versions(object: &mut Value) {
    let storage = object.list_at("spec.versions").iter().find(|version| version.bool_at("storage"));
    let Some(storage) = storage.map(|version| version.at("name").clone()) else { return };
    let mut stored = object.list_at("status.storedVersions").to_vec();
    if !stored.contains(&storage) {
        stored.push(storage);
        object.set_at("status.storedVersions", stored);
    }
}

fn complete_schema(ty: &'static Type, schema: &mut Value, path: &str) -> Result<(), String> {
    let Value::Object(members) = schema else { return Ok(()) };
    for (name, value) in members {
        let path = format!("{path}.{name}");
        match (name.as_str(), value) {
            ("items", value @ Value::Object(_)) => decoded(ty, value, &path)?,
            ("items" | "allOf" | "oneOf" | "anyOf", Value::Array(schemas)) => {
                let is_new = name == "items";
                for schema in schemas {
                    if is_new { decoded(ty, schema, &path)? } else { complete_schema(ty, schema, &path)? }
                }
            }
            ("additionalProperties" | "additionalItems", value) => match value {
                Value::Object(_) => decoded(ty, value, &path)?,
                Value::Bool(_) => {}
                _ => return Err("boolean or JSON schema expected".to_owned()),
            },
            ("not", value) => complete_schema(ty, value, &path)?,
            ("properties" | "patternProperties" | "definitions", Value::Object(schemas)) => {
                for schema in schemas.values_mut() {
                    complete_schema(ty, schema, &path)?;
                }
            }
            ("dependencies", Value::Object(dependencies)) => {
                for schema in dependencies.values_mut().filter(|value| value.is_object()) {
                    decoded(ty, schema, &path)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Decodes a schema that the decoder of built-in types skipped.
fn decoded(ty: &'static Type, schema: &mut Value, path: &str) -> Result<(), String> {
    decode::normalise(ty, schema).map_err(|error| {
        error.to_string().replacen("field JSONSchemaProps.", &format!("field JSONSchemaProps.{path}."), 1)
    })?;
    complete_schema(ty, schema, path)
}

fn unrecognized_formats(object: &Value) -> Vec<&str> {
    let mut formats = Vec::new();
    Spec::of(object).has_schema(&mut |schema| {
        let format = schema.text("format");
        if !format.is_empty() && !is_recognized(schema, format) && !formats.contains(&format) {
            formats.push(format);
        }
        false
    });
    formats
}

fn is_recognized(schema: Schema<'_>, format: &str) -> bool {
    let types = match schema.kind() {
        "" => Types::default(),
        name => match structural::Type::named(name) {
            Some(ty) => Types::only(ty),
            None => return false,
        },
    };
    Format::of(format, types).kind.is_some()
}

#[cfg(test)]
mod tests;
