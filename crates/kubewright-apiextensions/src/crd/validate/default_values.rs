//! Validation of defaults: each must be valid for its schema.

use serde_json::{Value, json};

use super::demands::Demands;
use crate::Structural;
use crate::custom::{self, Malformed};
use crate::structural::Contains;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path, aggregate};
use kubewright_apimachinery::json;
use kubewright_cel::rules::Rules;

/// Validates all defaults of a structural schema.
pub(super) fn validate(
    schema: &Structural,
    demands: &Demands<'_>,
    rules: &dyn Rules,
    path: &Path,
) -> ErrorList {
    if !schema.contains.defaults {
        return ErrorList::new();
    }
    // The root is a resource even if not marked as embedded.
    let contains = Contains { embedded: true, ..schema.contains };
    let root = Structural { embedded_resource: true, contains, ..schema.clone() };
    let mut walk =
        Walk { pruned: demands.pruned_defaults, rules, steps: Vec::new(), errors: ErrorList::new() };
    walk.schema(&root, &root, false, path);
    walk.errors
}

/// Whether a default contains fields that its schema does not declare.
pub(super) fn has_unknown_fields(schema: &Structural) -> bool {
    schema.contains.defaults
        && (schema.default.as_ref().is_some_and(|value| !is_pruned(schema, value))
            || schema.parts().any(has_unknown_fields))
}

fn is_pruned(schema: &Structural, value: &Value) -> bool {
    custom::prune_paths(schema, &mut value.clone(), schema.embedded_resource).is_empty()
}

/// A step of the path from a resource to a value.
enum Step {
    Child(String),
    Index,
}

struct Walk<'a> {
    pruned: bool,
    rules: &'a dyn Rules,
    /// The path from the innermost resource.
    steps: Vec<Step>,
    errors: ErrorList,
}

impl Walk<'_> {
    /// `resource` is the schema of the innermost resource; `inside_meta` is set below its `apiVersion`,
    /// `kind` and `metadata`.
    fn schema(&mut self, schema: &Structural, resource: &Structural, inside_meta: bool, path: &Path) {
        if schema.embedded_resource {
            let outer = std::mem::take(&mut self.steps);
            self.value(schema, schema, false, path);
            self.parts(schema, schema, false, path);
            self.steps = outer;
        } else {
            self.value(schema, resource, inside_meta, path);
            self.parts(schema, resource, inside_meta, path);
        }
    }

    fn parts(&mut self, schema: &Structural, resource: &Structural, inside_meta: bool, path: &Path) {
        // Values of maps cannot have defaults.
        if let Some(item) = schema.items.as_deref() {
            self.steps.push(Step::Index);
            self.schema(item, resource, inside_meta, &path.child("items"));
            self.steps.pop();
        }
        for (name, property) in &schema.properties {
            let is_meta =
                schema.embedded_resource && matches!(name.as_str(), "metadata" | "apiVersion" | "kind");
            self.steps.push(Step::Child(name.clone()));
            self.schema(property, resource, inside_meta || is_meta, &path.child("properties").key(name));
            self.steps.pop();
        }
    }

    fn value(&mut self, schema: &Structural, resource: &Structural, inside_meta: bool, path: &Path) {
        let Some(value) = &schema.default else { return };
        let path = path.child("default");
        // Unknown types are rejected elsewhere.
        if schema.first_unknown_type().is_some() || inside_meta && resource.first_unknown_type().is_some() {
            return;
        }
        if inside_meta {
            let found = metadata(resource, &self.surrounded(value), true, &Path::root());
            if !found.is_empty() {
                let detail = format!("must result in valid metadata: {}", aggregate(&found));
                self.errors.push(FieldError::invalid_printed(&path, printed(value), detail));
                return;
            }
        } else {
            if self.pruned && !is_pruned(schema, value) {
                let detail = "must not have unknown fields";
                self.errors.push(FieldError::invalid_printed(&path, printed(value), detail));
            }
            let found = metadata(schema, value, schema.embedded_resource, &path);
            if !found.is_empty() {
                self.errors.extend(found);
                return;
            }
        }
        let found = custom::validate_at(schema, value, &path);
        if !found.is_empty() {
            self.errors.extend(found);
            return;
        }
        self.errors.extend(self.rules.evaluate(schema.into(), value, schema.embedded_resource, &path));
    }

    /// Wraps a value in a resource that contains nothing else.
    fn surrounded(&self, value: &Value) -> Value {
        let mut object = value.clone();
        for step in self.steps.iter().rev() {
            object = match step {
                Step::Child(name) => json!({ name.as_str(): object }),
                Step::Index => json!([object]),
            };
        }
        if let Value::Object(object) = &mut object {
            object.entry("kind").or_insert_with(|| "Validation".into());
            object.entry("apiVersion").or_insert_with(|| "validation/v1".into());
        }
        object
    }
}

/// Validates the metadata of a resource and of its embedded resources.
fn metadata(schema: &Structural, value: &Value, whole_object: bool, path: &Path) -> ErrorList {
    match custom::coerce_metadata(schema, &mut value.clone(), path, whole_object, Malformed::Refuse) {
        Err(error) => vec![error],
        Ok(_) => custom::validate_metadata(schema, value, path, whole_object),
    }
}

fn printed(value: &Value) -> String {
    match value {
        Value::String(text) => kubewright_apimachinery::field::quote(text),
        other => json::to_string(other),
    }
}
