//! Checks configurations that are merged without field managers, as those of mutating admission policies.
//!
//! Such a configuration must not contain atomic lists, maps or structs, because it would replace fields that
//! it does not name.

use serde_json::Value;

use super::path::Element;
use super::schema::{Schema, Ty};
use super::typed::{Duplicates, validate};

/// Validates a configuration against the schema. The error has upstream's wording.
pub fn check(schema: Schema<'_>, configuration: &Value) -> Result<(), String> {
    validate(schema.ty(), configuration, Duplicates::Refused)
}

/// The paths of the atomic lists, maps and structs in a valid configuration. As upstream, does not look into
/// the values of undeclared fields, and list items are named by index.
pub fn atomics(schema: Schema<'_>, configuration: &Value) -> Vec<String> {
    let mut found = Vec::new();
    find(schema.ty(), configuration, "", &mut found);
    found
}

fn find(ty: Ty<'_>, value: &Value, path: &str, found: &mut Vec<String>) {
    let atom = ty.atom();
    match value {
        Value::Object(fields) => {
            let Some(map) = atom.map else { return };
            if map.atomic {
                found.push(path.to_owned());
            }
            for (name, value) in fields {
                if let Some(ty) = map.field(name) {
                    find(ty, value, &format!("{path}{}", Element::field(name)), found);
                }
            }
        }
        Value::Array(items) => {
            let Some(list) = atom.list else { return };
            if list.is_atomic() {
                found.push(path.to_owned());
            }
            for (index, item) in items.iter().enumerate() {
                find(list.element, item, &format!("{path}[{index}]"), found);
            }
        }
        _ => {}
    }
}
