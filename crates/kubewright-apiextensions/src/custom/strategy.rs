//! The strategy of custom resources: resets fields that clients cannot set, and validates everything except
//! CEL rules.

use serde_json::Value;

use super::crd_validation::{CrdValidation, Version};
use super::lists::validate_lists;
use super::metadata::validate_metadata;
use super::validate::{validate, validate_update, validate_update_at};
use kubewright_apimachinery::field::{ErrorKind, ErrorList, FieldError, Path, quote};
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::meta::{self, NameRule, Rules};
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

/// Names of custom resources are DNS subdomains.
const META_RULES: Rules = Rules::generic(NameRule::DnsSubdomain);

/// Prepares an object for create: drops the status if it is a subresource, and sets generation 1.
pub fn prepare_create(version: &Version, object: &mut Value) {
    if version.status {
        object.remove_at("status");
    }
    object.set_at("metadata.generation", 1);
}

/// Prepares an object for update: keeps the old status if it is a subresource, and increments the generation
/// if anything but metadata changed.
pub fn prepare_update(version: &Version, new: &mut Value, old: &Value) {
    if version.status {
        match (old.get("status"), new.as_object_mut()) {
            (Some(status), Some(fields)) => {
                fields.insert("status".to_owned(), status.clone());
            }
            _ => {
                new.remove_at("status");
            }
        }
    }
    if !equal_but_metadata(new, old) {
        new.set_at("metadata.generation", old.int_at("metadata.generation").unwrap_or_default() + 1);
    }
}

/// Prepares an object for an update of its status: keeps everything else except `managedFields`.
pub fn prepare_status_update(new: &mut Value, old: &Value) {
    let status = new.as_object_mut().and_then(|fields| fields.remove("status"));
    let managed = new.remove_at("metadata.managedFields");
    *new = old.clone();
    new.remove_at("metadata.managedFields");
    if let Some(managed) = managed {
        new.set_at("metadata.managedFields", managed);
    }
    new.remove_at("status");
    if let (Some(status), Some(fields)) = (status, new.as_object_mut()) {
        fields.insert("status".to_owned(), status);
    }
}

fn equal_but_metadata(new: &Value, old: &Value) -> bool {
    let (Value::Object(new), Value::Object(old)) = (new, old) else { return new == old };
    let others =
        |fields: &serde_json::Map<String, Value>| fields.len() - usize::from(fields.contains_key("metadata"));
    others(new) == others(old)
        && new.iter().all(|(name, value)| name == "metadata" || old.get(name) == Some(value))
}

/// Validates an object on create, without CEL rules; see [`blocks_rules`].
pub fn validate_create(definition: &CrdValidation, version: &str, object: &Value) -> ErrorList {
    let Some(rules) = definition.versions.get(version) else { return ErrorList::new() };
    let mut errors = type_errors(definition.gvk(version), object);
    if errors.is_empty() {
        let path = Path::new("metadata");
        let metadata = object.at("metadata");
        errors.extend(meta::object_meta(metadata, definition.namespaced, &META_RULES.name, &path));
        errors.extend(validate(&rules.schema, object));
        errors.extend(scale_errors(rules, object));
    }
    errors.extend(validate_metadata(&rules.schema, object, &Path::root(), false));
    errors.extend(validate_lists(&rules.schema, object));
    errors
}

/// Validates an object on update, without CEL rules; see [`blocks_rules`].
pub fn validate_replace(definition: &CrdValidation, version: &str, new: &Value, old: &Value) -> ErrorList {
    let Some(rules) = definition.versions.get(version) else { return ErrorList::new() };
    let gvk = definition.gvk(version);
    let types = type_errors(gvk, new);
    let mut errors = meta::update(&META_RULES, META_RULES.update, definition.namespaced, new, old);
    if types.is_empty() {
        errors.extend(validate_update(&rules.schema, new, old));
        errors.extend(scale_errors(rules, new));
    } else {
        errors.extend(types);
    }
    errors.extend(validate_metadata(&rules.schema, new, &Path::root(), false));
    errors.extend(new_list_errors(rules, new, old));
    errors
}

/// Validates an object on an update of its status, without CEL rules; see [`blocks_rules`].
pub fn validate_status(definition: &CrdValidation, version: &str, new: &Value, old: &Value) -> ErrorList {
    let Some(rules) = definition.versions.get(version) else { return ErrorList::new() };
    let gvk = definition.gvk(version);
    let types = type_errors(gvk, new);
    let mut errors = meta::update(&META_RULES, META_RULES.update, definition.namespaced, new, old);
    if types.is_empty() {
        if let (Some(status), Some(schema)) = (new.get("status"), rules.schema.properties.get("status")) {
            errors.extend(validate_update_at(schema, status, old.at("status"), &Path::new("status")));
        }
        errors.extend(rules.scale.iter().flat_map(|scale| scale.validate_status(new)));
    } else {
        errors.extend(types);
    }
    errors.extend(new_list_errors(rules, new, old));
    errors
}

/// The error that replaces the evaluation of CEL rules if the object has structural errors.
pub fn blocks_rules(errors: &[FieldError]) -> Option<FieldError> {
    let blocking = |kind: ErrorKind| {
        matches!(
            kind,
            ErrorKind::NotSupported
                | ErrorKind::Required
                | ErrorKind::TooLong
                | ErrorKind::TooMany
                | ErrorKind::TypeInvalid
        )
    };
    errors.iter().any(|error| blocking(error.kind)).then(|| {
        FieldError::invalid(
            &Path::root(),
            Value::Null,
            "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
        )
    })
}

/// Warnings about new finalizers.
pub fn warnings(new: &Value, old: Option<&Value>) -> Vec<String> {
    let known = old.map_or(&[][..], |old| old.list_at("metadata.finalizers"));
    let mut added: Vec<&str> = new
        .list_at("metadata.finalizers")
        .iter()
        .filter(|finalizer| !known.contains(finalizer))
        .filter_map(Value::as_str)
        .collect();
    added.sort_unstable();
    added.dedup();
    added.into_iter().flat_map(finalizer_warnings).collect()
}

fn finalizer_warnings(finalizer: &str) -> Vec<String> {
    let mut messages = names::label_key(finalizer);
    let standard = matches!(finalizer, "orphan" | "foregroundDeletion" | "kubernetes");
    if !finalizer.contains('/') && !standard {
        let path = if finalizer.contains('.') { " including a path (/)" } else { "" };
        messages.push(format!(
            "prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with other finalizer writers"
        ));
    }
    let quoted = quote(finalizer);
    messages.iter().map(|message| format!("metadata.finalizers: {quoted}: {message}")).collect()
}

fn type_errors(expected: Gvk<'_>, object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let api_version = expected.api_version();
    for (name, wanted) in [("kind", expected.kind), ("apiVersion", &api_version)] {
        let given = object.str_at(name);
        if given != wanted {
            errors.push(FieldError::invalid(&Path::new(name), given, format!("must be {wanted}")));
        }
    }
    errors
}

fn scale_errors(rules: &Version, object: &Value) -> ErrorList {
    let scale = rules.scale.iter();
    scale.flat_map(|scale| [scale.validate_spec(object), scale.validate_status(object)]).flatten().collect()
}

/// Duplicate errors of lists, unless the old object already had duplicates.
fn new_list_errors(rules: &Version, new: &Value, old: &Value) -> ErrorList {
    let errors = validate_lists(&rules.schema, new);
    if errors.is_empty() || validate_lists(&rules.schema, old).is_empty() { errors } else { ErrorList::new() }
}

#[cfg(test)]
mod tests;
