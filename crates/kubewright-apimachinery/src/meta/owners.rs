//! Validation of `metadata.ownerReferences`. Does not check that owners exist.

use serde_json::Value;

use crate::field::{ErrorList, FieldError, Path, printed};
use crate::gvk::split_api_version;
use crate::object::Fields as _;

/// The fields of an owner reference in Go's order, for messages.
const FIELDS: [&str; 6] = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];

/// Validates the owner references of an object.
pub(super) fn validate(references: &[Value], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut controller: Option<String> = None;
    for reference in references {
        errors.extend(validate_one(reference, path));
        if !reference.bool_at("controller") {
            continue;
        }
        let this = format!("{}/{}", reference.str_at("kind"), reference.str_at("name"));
        match &controller {
            Some(first) => {
                let all: Vec<String> = references.iter().map(print).collect();
                errors.push(FieldError::invalid_printed(
                    path,
                    format!("[{}]", all.join(",")),
                    format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for \
                         {first} and {this}"
                    ),
                ));
            }
            None => controller = Some(this),
        }
    }
    errors
}

fn validate_one(reference: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let api_version = reference.str_at("apiVersion");
    let (group, version) = split_api_version(api_version);
    // Go rejects an apiVersion with more than one slash.
    let (group, version) = if version.contains('/') { ("", "") } else { (group, version) };
    if version.is_empty() {
        errors.push(FieldError::invalid(&path.child("apiVersion"), api_version, "version must not be empty"));
    }
    for name in ["kind", "name", "uid"] {
        if reference.str_at(name).is_empty() {
            errors.push(FieldError::invalid(&path.child(name), "", "must not be empty"));
        }
    }
    if (group, version, reference.str_at("kind")) == ("", "v1", "Event") {
        errors.push(FieldError::invalid_printed(
            path,
            print(reference),
            "/v1, Kind=Event is disallowed from being an owner",
        ));
    }
    errors
}

/// An owner reference as Go marshals it.
fn print(reference: &Value) -> String {
    let required = |name: &str| matches!(name, "apiVersion" | "kind" | "name" | "uid");
    let fields: Vec<String> = FIELDS
        .iter()
        .filter(|name| required(name) || reference.has(name))
        .map(|name| match reference.at(name) {
            Value::Null => format!("{}:\"\"", printed(&(*name).into())),
            value => format!("{}:{value}", printed(&(*name).into())),
        })
        .collect();
    format!("{{{}}}", fields.join(","))
}
