//! Validation of `x-kubernetes-preserve-unknown-fields`, `-map-type`, `-list-type` and `-list-map-keys`.

use super::super::printed;
use super::super::schema::{Items, Schema};
use super::demands::Demands;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};

const LIST_TYPES: [&str; 3] = ["atomic", "set", "map"];
const MAP_TYPES: [&str; 2] = ["atomic", "granular"];

/// Validates one schema without its subschemas.
pub(super) fn validate(schema: Schema<'_>, demands: &Demands<'_>, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let preserve = "x-kubernetes-preserve-unknown-fields";
    if schema.get(preserve).is_some() && !schema.preserves_unknown_fields() {
        errors.push(FieldError::invalid(&path.child(preserve), false, "must be true or undefined"));
    }
    if let Some(map_type) = schema.map_type() {
        errors.extend(type_is(schema, "object", "x-kubernetes-map-type", path));
        if !MAP_TYPES.contains(&map_type) {
            let path = path.child("x-kubernetes-map-type");
            errors.push(FieldError::not_supported(&path, map_type, &MAP_TYPES));
        }
    }
    if schema.list_type().is_some() {
        let wrong = type_is(schema, "array", "x-kubernetes-list-type", path);
        if wrong.is_none()
            && demands.atomic_sets
            && let Some((name, list_type)) = non_atomic_set(schema)
        {
            // Upstream quotes the list type here even if the map type is invalid.
            let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
            errors.push(FieldError::invalid(&path.child("items").child(name), list_type, detail));
        }
        errors.extend(wrong);
    }
    errors.extend(list_type(schema, path));
    if demands.map_keys {
        errors.extend(map_keys(schema, path));
    }
    errors
}

fn type_is(schema: Schema<'_>, kind: &str, because: &str, path: &Path) -> Option<FieldError> {
    let detail = format!("must be {kind} if {because} is specified");
    let path = path.child("type");
    match schema.kind() {
        "" => Some(FieldError::required(&path, detail)),
        other if other == kind => None,
        other => Some(FieldError::invalid(&path, other, detail)),
    }
}

/// The field that makes the items of a set non-atomic, and their list type.
pub(super) fn non_atomic_set(schema: Schema<'_>) -> Option<(&'static str, Option<&str>)> {
    let item = schema.item().filter(|_| schema.list_type() == Some("set"))?;
    match item.kind() {
        "array" => item
            .list_type()
            .filter(|list_type| *list_type != "atomic")
            .map(|list_type| ("x-kubernetes-list-type", Some(list_type))),
        "object" => (item.map_type() != Some("atomic")).then(|| ("x-kubernetes-map-type", item.list_type())),
        _ => None,
    }
}

fn list_type(schema: Schema<'_>, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let type_path = path.child("x-kubernetes-list-type");
    let keys_path = path.child("x-kubernetes-list-map-keys");
    let keys = schema.map_keys();
    if let Some(list_type) = schema.list_type()
        && !LIST_TYPES.contains(&list_type)
    {
        errors.push(FieldError::not_supported(&type_path, list_type, &LIST_TYPES));
    }
    if !keys.is_empty() {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        match schema.list_type() {
            None => errors.push(FieldError::required(&type_path, detail)),
            Some("map") => {}
            Some(other) => errors.push(FieldError::invalid(&type_path, other, detail)),
        }
    }
    if schema.list_type() != Some("map") {
        return errors;
    }
    if keys.is_empty() {
        let detail = "must not be empty if x-kubernetes-list-type is map";
        errors.push(FieldError::required(&keys_path, detail));
    }
    let items_path = path.child("items");
    let item = match schema.items() {
        None => {
            let detail = "must have a schema if x-kubernetes-list-type is map";
            errors.push(FieldError::required(&items_path, detail));
            return errors;
        }
        Some(Items::Each(_)) => {
            let items = schema.get("items").map(printed::items).unwrap_or_default();
            let detail = "must only have a single schema if x-kubernetes-list-type is map";
            errors.push(FieldError::invalid_printed(&items_path, items, detail));
            return errors;
        }
        Some(Items::One(item)) => item,
    };
    if item.kind() != "object" {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        errors.push(FieldError::invalid(&items_path.child("type"), item.kind(), detail));
        return errors;
    }
    for (i, key) in keys.iter().enumerate() {
        match item.property(key).map(Schema::kind) {
            None => {
                let detail = "entries must all be names of item properties";
                errors.push(FieldError::invalid(&keys_path, keys.clone(), detail));
            }
            Some("array" | "object") => {
                // Upstream quotes the type of the item.
                let path = items_path.child("properties").key(key).child("type");
                let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                errors.push(FieldError::invalid(&path, item.kind(), detail));
            }
            Some(_) => {}
        }
        if keys[..i].contains(key) {
            let detail = "must not contain duplicate entries";
            errors.push(FieldError::invalid(&keys_path, keys.clone(), detail));
        }
    }
    errors
}

/// Checks that items of lists of type `set` and `map` are not nullable, and that list map keys are required
/// or have defaults.
pub(super) fn map_keys(schema: Schema<'_>, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let (Some(item), Some(list_type @ ("set" | "map"))) = (schema.item(), schema.list_type()) else {
        return errors;
    };
    let path = path.child("items");
    if item.flag("nullable") {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        errors.push(FieldError::forbidden(&path.child("nullable"), detail));
    }
    if list_type == "set" {
        return errors;
    }
    let required = item.strings("required");
    for key in schema.map_keys() {
        let Some(property) = item.property(key) else { continue };
        let path = path.child("properties").key(key);
        if !required.contains(&key) && property.default().is_none() {
            errors.push(FieldError::required(
                &path.child("default"),
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
            ));
        }
        if property.flag("nullable") {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(FieldError::forbidden(&path.child("nullable"), detail));
        }
    }
    errors
}
