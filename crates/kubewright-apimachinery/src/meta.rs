//! Validation of object metadata.
//!
//! Callers pass the differences between kinds as [`Rules`]. On update, upstream validates metadata in several
//! layers, so the causes of a Status can contain the same error several times; this module reproduces that.

pub mod bytes;
mod owners;
mod rules;

use serde_json::Value;

use crate::field::{ErrorList, FieldError, Path};
use crate::names;
use crate::object::Fields as _;

pub use rules::{Check, NameRule, Rules};

/// The detail of errors about changed immutable fields.
pub const IMMUTABLE: &str = "field is immutable";

/// Maximum total size of annotation keys and values, in bytes.
pub const MAX_ANNOTATIONS: usize = 256 * 1024;

const MAX_FIELD_MANAGER: usize = 128;
const MAX_SUBRESOURCE: usize = 256;

/// Validates the metadata of an object on create, after name generation.
pub fn create(rules: &Rules, namespaced: bool, object: &Value) -> ErrorList {
    let errors = checked_new(rules, namespaced, object.at("metadata"));
    if errors.is_empty() {
        // Upstream checks that the name is a valid path segment only if the rules of the kind pass.
        return object_meta(
            object.at("metadata"),
            namespaced,
            &NameRule::PathSegment,
            &Path::new("metadata"),
        );
    }
    errors
}

/// Validates the metadata of an object on update, also through a subresource. `checks` are those of the
/// kind's strategy.
pub fn update(rules: &Rules, checks: &[Check], namespaced: bool, new: &Value, old: &Value) -> ErrorList {
    let meta = new.at("metadata");
    let path = Path::new("metadata");
    let mut errors = object_meta(meta, namespaced, &NameRule::PathSegment, &path);
    // Upstream validates changes for every kind and again for kinds that ask for it, so each error is
    // reported twice.
    let changes = changes(meta, old.at("metadata"), &path);
    errors.extend(changes.iter().cloned());
    for check in checks {
        match check {
            Check::New => errors.extend(checked_new(rules, namespaced, meta)),
            Check::Update => {
                errors.extend(changes.iter().cloned());
                errors.extend(kube_finalizers(rules, meta));
            }
        }
    }
    errors
}

/// Validates the name of a field manager.
pub fn field_manager(manager: &str, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if manager.len() > MAX_FIELD_MANAGER {
        errors.push(FieldError::too_long(path, MAX_FIELD_MANAGER));
    }
    for (position, c) in manager.char_indices() {
        if !printable(c) {
            let detail = format!("invalid character U+{:04X} (at position {position})", u32::from(c));
            errors.push(FieldError::invalid(path, manager, detail));
        }
    }
    errors
}

/// Validates label keys and values.
pub fn labels(labels: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (key, value) in labels.as_object().into_iter().flatten() {
        errors.extend(invalid(path, key, names::label_key(key)));
        let value = value.as_str().unwrap_or_default();
        errors.extend(invalid(path, value, names::label_value(value)));
    }
    errors
}

/// Validates annotation keys and the total size.
pub fn annotations(annotations: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut size = 0;
    for (key, value) in annotations.as_object().into_iter().flatten() {
        // Unlike label keys, annotation keys are case-insensitive.
        errors.extend(invalid(path, key, names::label_key(&key.to_lowercase())));
        size += key.len() + value.as_str().unwrap_or_default().len();
    }
    if size > MAX_ANNOTATIONS {
        errors.push(FieldError::too_long(path, MAX_ANNOTATIONS));
    }
    errors
}

/// Validates the whole metadata of an object or template.
pub fn object_meta(meta: &Value, namespaced: bool, name_rule: &NameRule, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let generate_name = meta.str_at("generateName");
    if !generate_name.is_empty() {
        errors.extend(invalid(
            &path.child("generateName"),
            generate_name,
            name_rule.check_prefix(generate_name),
        ));
    }
    let name = meta.str_at("name");
    if name.is_empty() {
        errors.push(FieldError::required(&path.child("name"), "name or generateName is required"));
    } else {
        errors.extend(invalid(&path.child("name"), name, name_rule.check(name)));
    }
    errors.extend(namespace(meta.str_at("namespace"), namespaced, &path.child("namespace")));
    if let Some(generation @ ..0) = meta.int_at("generation") {
        errors.push(FieldError::invalid(
            &path.child("generation"),
            generation,
            "must be greater than or equal to 0",
        ));
    }
    errors.extend(labels(meta.at("labels"), &path.child("labels")));
    errors.extend(annotations(meta.at("annotations"), &path.child("annotations")));
    errors.extend(owners::validate(meta.list_at("ownerReferences"), &path.child("ownerReferences")));
    errors.extend(finalizers(meta.list_at("finalizers"), &path.child("finalizers")));
    errors.extend(managed_fields(meta.list_at("managedFields"), &path.child("managedFields")));
    errors
}

/// Validates a finalizer name. Names without a slash must be known ones.
pub fn kube_finalizer(finalizer: &str, path: &Path) -> Option<FieldError> {
    let known = matches!(finalizer, "kubernetes" | "orphan" | "foregroundDeletion");
    (!finalizer.contains('/') && !known).then(|| {
        FieldError::invalid(
            path,
            finalizer,
            "name is neither a standard finalizer name nor is it fully qualified",
        )
    })
}

/// Creates one error for each message about a value.
pub fn invalid<'a>(
    path: &'a Path,
    value: &'a str,
    messages: Vec<String>,
) -> impl Iterator<Item = FieldError> + 'a {
    messages.into_iter().map(move |message| FieldError::invalid(path, value, message))
}

/// Returns an error if the field changed. Empty and absent values are equal.
pub fn immutable(new: &Value, old: &Value, path: &Path) -> Option<FieldError> {
    let is_empty = |value: &Value| match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        value => value.is_null(),
    };
    (new != old && !(is_empty(new) && is_empty(old)))
        .then(|| FieldError::invalid(path, new.clone(), IMMUTABLE))
}

fn checked_new(rules: &Rules, namespaced: bool, meta: &Value) -> ErrorList {
    let mut errors = object_meta(meta, namespaced, &rules.name, &Path::new("metadata"));
    errors.extend(kube_finalizers(rules, meta));
    errors
}

fn kube_finalizers(rules: &Rules, meta: &Value) -> ErrorList {
    if !rules.kube_finalizers {
        return ErrorList::new();
    }
    let path = Path::new("metadata").child("finalizers");
    let named = meta.list_at("finalizers").iter().filter_map(Value::as_str).enumerate();
    named.filter_map(|(i, finalizer)| kube_finalizer(finalizer, &path.index(i))).collect()
}

/// Validates the changes of an update.
fn changes(new: &Value, old: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if old.has("deletionTimestamp") {
        errors.extend(no_new_finalizers(new, old, &path.child("finalizers")));
    }
    if new.str_at("resourceVersion").is_empty() {
        errors.push(FieldError::invalid(
            &path.child("resourceVersion"),
            "",
            "must be specified for an update",
        ));
    }
    let generation = new.int_at("generation").unwrap_or_default();
    if generation < old.int_at("generation").unwrap_or_default() {
        errors.push(FieldError::invalid(&path.child("generation"), generation, "must not be decremented"));
    }
    for name in ["name", "namespace", "uid"] {
        if new.str_at(name) != old.str_at(name) {
            errors.push(FieldError::invalid(&path.child(name), new.str_at(name), IMMUTABLE));
        }
    }
    for name in ["creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        errors.extend(immutable(new.at(name), old.at(name), &path.child(name)));
    }
    errors.extend(labels(new.at("labels"), &path.child("labels")));
    errors.extend(annotations(new.at("annotations"), &path.child("annotations")));
    errors.extend(owners::validate(new.list_at("ownerReferences"), &path.child("ownerReferences")));
    errors.extend(managed_fields(new.list_at("managedFields"), &path.child("managedFields")));
    errors
}

fn namespace(namespace: &str, namespaced: bool, path: &Path) -> ErrorList {
    match (namespaced, namespace.is_empty()) {
        (true, true) => vec![FieldError::required(path, "")],
        (true, false) => invalid(path, namespace, NameRule::DnsLabel.check(namespace)).collect(),
        (false, false) => vec![FieldError::forbidden(path, "not allowed on this type")],
        (false, true) => ErrorList::new(),
    }
}

fn finalizers(finalizers: &[Value], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for finalizer in finalizers.iter().filter_map(Value::as_str) {
        errors.extend(invalid(path, finalizer, names::label_key(finalizer)));
    }
    let has = |name: &str| finalizers.iter().any(|finalizer| finalizer == name);
    if has("orphan") && has("foregroundDeletion") {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.push(FieldError::invalid(path, finalizers.to_vec(), detail));
    }
    errors
}

fn no_new_finalizers(new: &Value, old: &Value, path: &Path) -> Option<FieldError> {
    let old = old.list_at("finalizers");
    let mut extra: Vec<&str> =
        new.list_at("finalizers").iter().filter(|f| !old.contains(f)).filter_map(Value::as_str).collect();
    extra.sort_unstable();
    extra.dedup();
    let quoted: Vec<String> = extra.iter().map(|finalizer| crate::field::quote(finalizer)).collect();
    (!quoted.is_empty()).then(|| {
        FieldError::forbidden(
            path,
            format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                quoted.join(", ")
            ),
        )
    })
}

fn managed_fields(entries: &[Value], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (i, entry) in entries.iter().enumerate() {
        let path = path.index(i);
        let operation = entry.str_at("operation");
        if !matches!(operation, "Apply" | "Update") {
            errors.push(FieldError::invalid(
                &path.child("operation"),
                operation,
                "must be `Apply` or `Update`",
            ));
        }
        let fields_type = entry.str_at("fieldsType");
        if !matches!(fields_type, "" | "FieldsV1") {
            errors.push(FieldError::invalid(&path.child("fieldsType"), fields_type, "must be `FieldsV1`"));
        }
        errors.extend(field_manager(entry.str_at("manager"), &path.child("manager")));
        if entry.str_at("subresource").len() > MAX_SUBRESOURCE {
            errors.push(FieldError::too_long(&path.child("subresource"), MAX_SUBRESOURCE));
        }
    }
    errors
}

/// Approximates Go's `unicode.IsPrint`: no control characters, and no spaces other than U+0020.
fn printable(c: char) -> bool {
    let invisible = matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(c, '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e000}'..='\u{f8ff}');
    c == ' ' || !(c.is_control() || c.is_whitespace() || invisible)
}
