//! Owned CRDs and their descriptors, with which OLM's console shows forms and status.

use kubewright_manifests::inventory::Inventory;
use serde_json::{Value, json};

use super::olm;
use super::readme::display_name;
use crate::delivery::rendered::{Object, Rendered};

/// Prefix of descriptors that select a form control.
const UI: &str = "urn:alm:descriptor:com.tectonic.ui";
/// The descriptor of conditions.
const CONDITIONS: &str = "urn:alm:descriptor:io.kubernetes.conditions";

/// The owned CRDs: one entry for each served version, sorted.
pub(super) fn owned(objects: &Rendered, inventory: &Inventory) -> Vec<Value> {
    let mut owned: Vec<(String, String, Value)> = Vec::new();
    for definition in objects.of_kind("CustomResourceDefinition") {
        let versions = definition.value()["spec"]["versions"].as_array().into_iter().flatten();
        for version in versions.filter(|version| version["served"] == true) {
            let name = version["name"].as_str().unwrap_or_default().to_owned();
            owned.push((definition.name().to_owned(), name, entry(definition, version, inventory)));
        }
    }
    owned.sort_by(|one, other| (&one.0, &one.1).cmp(&(&other.0, &other.1)));
    owned.into_iter().map(|(.., entry)| entry).collect()
}

fn entry(definition: &Object, version: &Value, inventory: &Inventory) -> Value {
    let spec = &definition.value()["spec"];
    let kind = spec["names"]["kind"].as_str().unwrap_or_default();
    let schema = &version["schema"]["openAPIV3Schema"];
    let described = schema["description"].as_str().map(paragraph);
    let mut entry = json!({
        "name": definition.name(),
        "version": version["name"],
        "kind": kind,
        "displayName": display_name(kind),
        "description": described.unwrap_or_else(|| format!("{} of the operator.", display_name(kind))),
    });
    let group = spec["group"].as_str().unwrap_or_default();
    olm::describe(&mut entry, group, kind, inventory);
    let mut resources: Vec<Value> = Vec::new();
    let controllers = inventory.controllers.iter();
    for controller in controllers.filter(|it| it.of.group == group && it.of.kind == kind) {
        for child in &controller.owns {
            let resource = json!({ "kind": child.kind, "name": "", "version": child.version });
            if !resources.contains(&resource) {
                resources.push(resource);
            }
        }
    }
    for (field, list) in [
        ("resources", resources),
        ("specDescriptors", descriptors(&schema["properties"]["spec"], spec_control)),
        ("statusDescriptors", descriptors(&schema["properties"]["status"], status_control)),
    ] {
        if !list.is_empty() {
            entry[field] = list.into();
        }
    }
    entry
}

/// One descriptor for each field.
fn descriptors(schema: &Value, control: fn(&str, &Value) -> Option<String>) -> Vec<Value> {
    let fields = schema["properties"].as_object().into_iter().flatten();
    let mut fields: Vec<_> = fields.collect();
    fields.sort_by_key(|(name, _)| *name);
    let descriptors = fields.into_iter().map(|(name, schema)| {
        let mut descriptor = json!({ "path": name, "displayName": display_name(name) });
        if let Some(description) = schema["description"].as_str() {
            descriptor["description"] = paragraph(description).into();
        }
        if let Some(control) = control(name, schema) {
            descriptor["x-descriptors"] = json!([control]);
        }
        descriptor
    });
    descriptors.collect()
}

/// The first paragraph, on one line.
fn paragraph(text: &str) -> String {
    let first = text.split("\n\n").next().unwrap_or_default();
    first.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn spec_control(name: &str, schema: &Value) -> Option<String> {
    let control = match (schema["type"].as_str()?, name) {
        ("integer", "replicas" | "size") => "podCount",
        ("integer" | "number", _) => "number",
        ("boolean", _) => "booleanSwitch",
        ("object", "resources") => "resourceRequirements",
        ("string", _) if schema["format"] == "password" => "password",
        ("string", _) if schema["enum"].is_null() => "text",
        _ => return None,
    };
    Some(format!("{UI}:{control}"))
}

fn status_control(name: &str, schema: &Value) -> Option<String> {
    match (schema["type"].as_str()?, name) {
        ("array", "conditions") => Some(CONDITIONS.to_owned()),
        ("integer", "replicas" | "readyReplicas") => Some(format!("{UI}:podCount")),
        ("string" | "integer", _) => Some(format!("{UI}:text")),
        _ => None,
    }
}
